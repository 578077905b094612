"""Reads the job's source: from the disk, or from the bundle that is open.

What was read can be noted, so that a bundle can hold it. Up to Python 3.8, a script that was started by a relative
path has that path in its frames: it is looked for where the job ran, and not where the reader runs.
"""

import contextlib
import os
from typing import Dict, Iterator, List, NamedTuple, Optional

from ddp_probe.reading import bundled
from ddp_probe.reading.model import Run
from ddp_probe.shared.regular_files import open_text

_LARGEST = 2_000_000  # Bytes; hand-written files are smaller.


class JobFile(NamedTuple):
    """One file of the job, in its current state."""

    text: str
    changed: float  # Seconds since 1970.


_NOTING: List[Dict[str, JobFile]] = []
_FOLDERS: List[str] = []  # The folders of the jobs that are being judged, the innermost last.


def read(path: str) -> Optional[JobFile]:
    """Return a file of the job; None if it is not here. A path in a log cannot be trusted: only regular files of a plausible size are read."""
    path = os.path.join(_FOLDERS[-1], path) if _FOLDERS and path else path
    bundle = bundled.current()
    place = bundle.source(path) if bundle is not None else path
    try:
        if not place or not os.path.isfile(place) or os.path.getsize(place) > _LARGEST:
            return None
        with open_text(place) as file:
            job_file = JobFile(file.read(), os.stat(place).st_mtime)
    except (OSError, ValueError):  # UnicodeDecodeError is a ValueError
        return None
    for noted in _NOTING:
        noted[path] = job_file
    return job_file


@contextlib.contextmanager
def noted() -> Iterator[Dict[str, JobFile]]:
    """Yield the files that are read meanwhile, by path."""
    job_files: Dict[str, JobFile] = {}
    _NOTING.append(job_files)
    try:
        yield job_files
    finally:
        _NOTING.remove(job_files)


def working_folder(run: Run) -> str:
    """Return where the job ran; empty if that is not known."""
    for process in run.processes:
        if process.started.cwd:
            return process.started.cwd
    return ""


@contextlib.contextmanager
def relative_to(folder: str) -> Iterator[None]:
    """Look for relative paths in a folder meanwhile."""
    _FOLDERS.append(folder)
    try:
        yield
    finally:
        _FOLDERS.pop()
