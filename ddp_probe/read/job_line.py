"""The line of the job in a traceback: the one that a person can change."""

from typing import Optional, Sequence

from ddp_probe.own_code import foreign, of_installed_program
from ddp_probe.schema import Site


def job_line(frames: Sequence[Site]) -> Optional[Site]:
    """Return the innermost frame that is the job's own; none where there are only those of libraries and launchers."""
    inner = list(reversed(frames))
    own = next((index for index, frame in enumerate(inner) if not foreign(frame.file)), None)
    if own is None:
        own = of_installed_program([frame.file for frame in inner])
    return None if own is None else inner[own]
