"""Finds the line of the job in a traceback: the line that the user can change."""

import re
from typing import List, Optional, Sequence

from ddp_probe.shared.own_code import foreign, of_installed_program
from ddp_probe.shared.schema import Site

_STARTS_CHILDREN = re.compile(r"[/\\]multiprocessing[/\\](?:spawn|forkserver)\.py$")
_BEGINS = ("spawn_main", "main")  # What the command lines of multiprocessing call; no line of a program does.


def own_frames(frames: Sequence[Site]) -> List[Site]:
    """Return the frames of the job's own code, in their order, outermost first."""
    return [frame for index, frame in enumerate(frames) if _is_own(frames, index)]


def job_line(frames: Sequence[Site]) -> Optional[Site]:
    """Return the innermost frame of the job's own code; None if all frames belong to libraries and launchers."""
    own = next((index for index in reversed(range(len(frames))) if _is_own(frames, index)), None)
    if own is not None:
        return frames[own]
    inner = list(reversed(frames))
    program = of_installed_program([frame.file for frame in inner])
    return None if program is None else inner[program]


def _is_own(frames: Sequence[Site], index: int) -> bool:
    return not foreign(frames[index].file) and not (frames[index].file == "<string>" and _starts_a_child(frames[index + 1 : index + 2]))


def _starts_a_child(called: Sequence[Site]) -> bool:
    """Tell whether what a command line has called is multiprocessing's beginning of a child: nobody has written that line."""
    return any(frame.function in _BEGINS and _STARTS_CHILDREN.search(frame.file) is not None for frame in called)
