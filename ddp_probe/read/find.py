"""Finds what there is to read: the newest run by default; a run by its name, the beginning of its name, or its path; files, patterns, plain logs.

Every command names a run in this one way.
"""

import difflib
import glob
import os
import re
import stat
from typing import Dict, List, NamedTuple, Sequence, Tuple

from ddp_probe import settings
from ddp_probe.errors import UnusableError
from ddp_probe.read import launches

PATTERNS = ("rank*.jsonl", "launcher*.jsonl")
_EMPTY = "It holds no file of the probe (%s)." % ", ".join(PATTERNS)
_LIST = "'python -m ddp_probe runs' lists the runs of this folder."
_SHOWN = 4  # Runs that are named where several fit.


class Sources(NamedTuple):
    """The files of one report."""

    events: List[str]  # Files that a probe wrote.
    texts: List[str]  # Everything else that was named.
    folders: List[str]
    unreadable: Dict[str, str]
    launch: int = 0  # Which of the launches in these files is meant, from 1; 0 where none is named.


class NoRunError(UnusableError):
    """There is no run at all."""

    nothing_recorded = True


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
        raise no_run(folder)
    return found[0]


def no_run(folder: str) -> NoRunError:
    """Return what to say of a folder that collects no run."""
    place = os.path.abspath(folder)
    fault = _fault(folder)
    return NoRunError(
        what="There is no run that can be read." if fault else "There is no run to read.",
        why="The folder %s cannot be read: %s." % (place, fault)
        if fault
        else "The folder %s holds none." % place
        if os.path.isdir(folder)
        else "There is no folder %s." % place,
        what_to_do="Run the job with DDP_PROBE=1, or name a run, a file or a plain log: python -m ddp_probe report PATH.",
    )


def _fault(folder: str) -> str:
    """Return why a folder cannot be read; empty where it can, or is not there."""
    try:
        os.listdir(folder)
    except FileNotFoundError:
        return ""
    except OSError as exc:
        return exc.strerror or str(exc)
    return ""


def sources(paths: Sequence[str]) -> Sources:
    """Return the files behind the paths of a command line."""
    found = Sources([], [], [], {})
    matched = [_matches(path) for path in paths] if paths else [([newest()], 0)]
    named = [path for matches, _ in matched for path in matches]
    for path in named:
        _take(path, found, alone=len(named) == 1)
    if not (found.events or found.texts) and all(why == _EMPTY for why in found.unreadable.values()):
        raise UnusableError(what="There is no run in %s." % named[0], why=_EMPTY, what_to_do=_LIST)
    return Sources(_once(found.events), _once(found.texts), _once(found.folders), found.unreadable, max(number for _, number in matched))


def _matches(path: str) -> Tuple[List[str], int]:
    """Return what a name stands for, and which launch of it. A name that exists is meant as it stands, whatever letters are in it."""
    for name, number in _readings(path):
        inside = os.path.join(root(), name)
        if os.path.lexists(name):
            return [name], number
        if name == "latest" and not os.path.exists(inside):
            return [newest()], number
        if os.path.isdir(inside):
            return [inside], number
        begun = [run for run in runs(root()) if name and os.path.basename(run).startswith(name)]
        if len(begun) == 1:
            return begun, number
        if begun:
            raise _several(name, begun)
        matches = sorted(glob.glob(name))
        if matches:
            return matches, number
    raise _nothing(path)


def _readings(path: str) -> List[Tuple[str, int]]:
    """RUN:3 is the third launch in the folder of a run, where nothing has that name."""
    found = re.fullmatch(r"(.+):([1-9][0-9]{0,6})", path, re.DOTALL)
    return [(path, 0), (found[1], int(found[2]))] if found else [(path, 0)]


def _several(name: str, begun: List[str]) -> UnusableError:
    names = [os.path.basename(run) for run in begun]
    more = " and %d more" % (len(names) - _SHOWN) if len(names) > _SHOWN else ""
    return UnusableError(
        what="Several runs begin with %s." % name,
        why="%s%s." % (", ".join(names[:_SHOWN]), more),
        what_to_do="Write more of the name. The newest of them is %s." % names[0],
    )


def _nothing(path: str) -> UnusableError:
    close = difflib.get_close_matches(path, [os.path.basename(run) for run in runs(root())], n=1)
    return UnusableError(
        what="There is nothing at %s." % path,
        why="No file, folder or pattern of that name fits, and no run in %s begins with it." % os.path.abspath(root()),
        what_to_do="Did you mean %s?" % close[0] if close else _LIST,
    )


def _take(path: str, found: Sources, *, alone: bool) -> None:
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
        siblings = os.path.dirname(os.path.realpath(path))
        parts = launches.beside(path, lambda: runs(siblings)) if alone else [path]
        found.folders.extend(parts)
        found.events.extend(file for part in parts for file in _event_files(part))
        return
    below = runs(path)
    if below:  # a folder of runs: the newest, as without a path
        _take(below[0], found, alone=alone)
        return
    found.unreadable[path] = _EMPTY


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
