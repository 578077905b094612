"""Finds the line of the job in a traceback: the line that the user can change."""

from typing import Optional, Sequence

from ddp_probe.own_code import foreign, of_installed_program
from ddp_probe.schema import Site


def job_line(frames: Sequence[Site]) -> Optional[Site]:
    """Return the innermost frame of the job's own code; None if all frames belong to libraries and launchers."""
    inner = list(reversed(frames))
    own = next((index for index, frame in enumerate(inner) if not foreign(frame.file)), None)
    if own is None:
        own = of_installed_program([frame.file for frame in inner])
    return None if own is None else inner[own]
