"""Finds what there is to read: the newest run by default; folders, files, shell patterns and plain logs where they are named."""

import glob
import os
import stat
from typing import Dict, List, NamedTuple, Sequence

from ddp_probe import settings
from ddp_probe.errors import ProbeError

PATTERNS = ("rank*.jsonl", "launcher*.jsonl")


class Sources(NamedTuple):
    """The files of one report."""

    events: List[str]  # Files that a probe wrote.
    texts: List[str]  # Everything else that was named.
    folders: List[str]
    unreadable: Dict[str, str]


def root() -> str:
    """Return the folder that collects the runs."""
    return str(settings.get(settings.DIR)) or "ddp_probe_runs"


def runs(folder: str) -> List[str]:
    """Return the runs in a folder, newest first."""
    try:
        found = [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False) and _event_files(entry.path)]
    except OSError:
        return []
    return sorted(found, key=_age, reverse=True)


def _age(folder: str) -> float:
    return max((_written(file) for file in _event_files(folder)), default=0.0)


def _written(file: str) -> float:
    try:
        return os.stat(file).st_mtime
    except OSError:  # A link that leads nowhere.
        return 0.0


def newest() -> str:
    """Return the newest run, or say how to get one."""
    folder = root()
    found = runs(folder)
    if not found:
        place = os.path.abspath(folder)
        raise ProbeError(
            what="There is no run to read.",
            why="The folder %s holds none." % place if os.path.isdir(folder) else "There is no folder %s." % place,
            what_to_do="Run the job with DDP_PROBE=1, or name a run, a file or a plain log: python -m ddp_probe report PATH.",
        )
    return found[0]


def sources(paths: Sequence[str]) -> Sources:
    """Return the files behind the paths of a command line."""
    found = Sources([], [], [], {})
    for path in paths or [newest()]:
        for one in _matches(path):
            _take(one, found)
    return Sources(_once(found.events), _once(found.texts), _once(found.folders), found.unreadable)


def _matches(path: str) -> List[str]:
    """A name that exists is meant as it stands, whatever letters are in it."""
    if os.path.lexists(path):
        return [path]
    matches = sorted(glob.glob(path))
    if not matches:
        raise ProbeError(
            what="There is nothing at %s." % path,
            why="No file, folder or pattern of that name fits.",
            what_to_do="'python -m ddp_probe runs' lists the runs of this folder.",
        )
    return matches


def _take(path: str, found: Sources) -> None:
    if not os.path.isdir(path):
        (found.events if _is_events(path) else found.texts).append(path)
        return
    try:
        os.listdir(path)
    except OSError as exc:
        found.unreadable[path] = exc.strerror or str(exc)
        return
    inner = _event_files(path)
    if inner:
        found.folders.append(path)
        found.events.extend(inner)
        return
    below = runs(path)
    if below:  # a folder of runs: the newest, as without a path
        _take(below[0], found)
        return
    found.unreadable[path] = "It holds no file of the probe (%s)." % ", ".join(PATTERNS)


def _event_files(folder: str) -> List[str]:
    inside = glob.escape(folder)
    return sorted(file for pattern in PATTERNS for file in glob.glob(os.path.join(inside, pattern)))


def _is_events(path: str) -> bool:
    """Tell a file of the probe by its name or its first line."""
    name = os.path.basename(path)
    if name.endswith(".jsonl") and name.startswith(("rank", "launcher")):
        return True
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # Opening a pipe waits for who writes into it.
            return False
        with open(path, "rb") as stream:
            head = stream.read(200)
    except OSError:
        return False
    return head.startswith(b'{"event":')


def _once(items: List[str]) -> List[str]:
    """Drop what is named twice, by whatever way."""
    return list({os.path.realpath(item): item for item in reversed(items)}.values())[::-1]
