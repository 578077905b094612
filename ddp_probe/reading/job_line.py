"""Finds the line of the job, which the user can change: in a traceback, in an exception nested in another, and for calls of spawned children."""

import re
from typing import List, Optional, Sequence

from ddp_probe.shared.mask_forms import Expression
from ddp_probe.shared.own_code import foreign, of_installed_program
from ddp_probe.shared.schema import Site

_STARTS_CHILDREN = Expression(r"[/\\]multiprocessing[/\\](?:spawn|forkserver)\.py$")
_RUNS_MODULES = Expression(r"^<frozen runpy>$|[/\\]runpy\.py$")
_BEGINS = ("spawn_main", "main")  # What the command lines of multiprocessing call; no line of a program does.


def own_frames(frames: Sequence[Site]) -> List[Site]:
    """Return the frames of the job's code, in their order, outermost first."""
    return [frame for index, frame in enumerate(frames) if _is_own(frames, index)]


def job_line(frames: Sequence[Site]) -> Optional[Site]:
    """Return the innermost frame of the job's code; None if all frames belong to libraries and launchers."""
    place = next((index for index in reversed(range(len(frames))) if _is_own(frames, index)), None)
    if place is not None:
        return frames[place]
    inner = list(reversed(frames))
    first = next((frame for frame in frames if not _RUNS_MODULES.search(frame.file)), None)
    launched = first.file if first is not None and first.function == "<module>" else ""
    program = of_installed_program([frame.file for frame in inner], launched)
    return None if program is None else inner[program]


def _is_own(frames: Sequence[Site], index: int) -> bool:
    return not foreign(frames[index].file) and not (frames[index].file == "<string>" and _starts_a_child(frames[index + 1 : index + 2]))


def _starts_a_child(called: Sequence[Site]) -> bool:
    """Tell whether a command line calls multiprocessing's start of a child, a line that no person wrote."""
    return any(frame.function in _BEGINS and _STARTS_CHILDREN.search(frame.file) is not None for frame in called)


# Finds an exception nested in another one: a worker's or child's traceback in its message, or the exception that it was raised from.

_TRACEBACK = "Traceback (most recent call last)"
_FRAME = Expression(r'^\s*File "([^"\n]{1,1000})", line (\d{1,9}), in ([^\n]{1,200})$', re.MULTILINE)
_LAST = Expression(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:: [^\n]*)?$", re.MULTILINE)
_WORKER = Expression(r"Caught \w+ in (?:DataLoader worker|pin memory thread)")
_LONGEST = 200


def nested_line(message: str) -> Optional[Site]:
    """Return the line of the job that raised an exception in a worker of a DataLoader, by the traceback in the message; None for others."""
    if not _WORKER.match(message):
        return None
    return job_line([Site(file, int(number), function) for file, number, function in _FRAME.findall(message)])


def inside(message: str, cause_message: str = "", cause: str = "") -> str:
    """Return the nested exception in one line, with the line of the job that raised it; empty if there is none."""
    if _TRACEBACK in message:
        lasts = _LAST.findall(message)
        if not lasts:
            return ""
        frames = [Site(file, int(number), function) for file, number, function in _FRAME.findall(message)]
        site = job_line(frames)
        return _cut(lasts[-1]) + (", at %s:%d" % (site.file, site.line) if site is not None else "")
    first = next((line.strip() for line in cause_message.splitlines() if line.strip()), "")
    return "from %s: %s" % (cause.rpartition(".")[2], _cut(first)) if first and first not in message else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"
