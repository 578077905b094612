"""Finds the files to read: the newest run by default; a run by name, beginning of its name, or path; files, patterns, plain logs.

All commands accept a run in the same forms.
"""

import contextlib
import glob
import itertools
import os
import pwd
import re
import shlex
import stat
from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from ddp_probe.reading import fold_file, launches
from ddp_probe.shared import ledger_schema, settings
from ddp_probe.shared.errors import UnusableError, UsageError
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.wording.text import say
from ddp_probe.wording.words import listed, quoted

PATTERNS = ("rank*.jsonl", "launcher*.jsonl")
_STARTS, _END = tuple(pattern.split("*")[0] for pattern in PATTERNS), ".jsonl"
_EMPTY = say("It contains no file of the probe ({patterns}).", patterns=listed(PATTERNS))
_LIST = say("'python -m ddp_probe runs' lists the runs of this folder.")
MOST_MATCHES = 200_000  # Files that a pattern may match: a run of ten thousand ranks has fifty thousand.
MOST_TEXTS = 20_000  # Plain logs of one job: one for each rank.
LOOK = "attach-"
"""How the name of what `attach` saw begins."""
_SHOWN = 4  # At most this many runs are listed if several match.


class Sources(NamedTuple):
    """The files to read for one report."""

    events: List[str]  # Files written by a probe.
    texts: List[str]  # All other given files.
    folders: List[str]
    unreadable: Dict[str, str]
    launch: int = 0  # Number of the requested launch in these files, from 1; 0 if none was requested.
    folds: List[str] = []  # Files that hold what was kept of the files of a host.


class NoRunError(UnusableError):
    """There is no run."""

    nothing_recorded = True


def root() -> str:
    """Return the folder that contains the runs."""
    return str(settings.get(settings.DIR)) or "ddp_probe_runs"


def runs(folder: str) -> List[str]:
    """Return the runs in a folder, newest first."""
    try:
        folders = [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False) and _event_files(entry.path)]
    except OSError:
        return []
    return sorted(folders, key=_age, reverse=True)


def _age(folder: str) -> float:
    return max((written(file) for file in _event_files(folder)), default=0.0)


def written(file: str) -> float:
    """Return when a file was last written; 0 if that is unknown."""
    try:
        return os.stat(file).st_mtime
    except OSError:  # A broken link.
        return 0.0


def newest() -> str:
    """Return the newest run, or say how to get one; a job's own comes before what `attach` saw of it."""
    folder = root()
    folders = runs(folder)
    if not folders:
        raise no_run(folder)
    if not is_look(folders[0]):
        return folders[0]
    own = [other for other in folders[1:] if not is_look(other) and _same_processes(other, folders[0])]
    return own[0] if own else folders[0]


def is_look(folder: str) -> bool:
    """Tell whether a run is what `attach` saw from outside."""
    return os.path.basename(folder).startswith(LOOK)


def looks_at(folder: str) -> List[str]:
    """Return the runs of `attach` beside a run that saw the same processes, newest first."""
    if is_look(folder):
        return []
    others = runs(os.path.dirname(os.path.abspath(folder)))
    return [other for other in others if is_look(other) and _same_processes(folder, other)]


def _same_processes(folder: str, other: str) -> bool:
    """Tell whether two runs have a process in common: its rank, host and pid are the name of its file."""
    return bool(_processes(folder) & _processes(other))


def _processes(folder: str) -> Set[str]:
    names = map(os.path.basename, _event_files(folder))
    return {name for name in names if name.startswith(_STARTS[0])}


def no_run(folder: str) -> UnusableError:
    """Return the error for a folder without runs, or with runs that this user may not read."""
    closed = _forbidden_in(folder)
    if closed is not None:
        return closed
    place = os.path.abspath(folder)
    fault = _fault(folder)
    if fault:
        why = say("The folder {folder} cannot be read: {reason}.", folder=place, reason=quoted(fault))
    elif os.path.isdir(folder):
        why = say("The folder {folder} contains none.", folder=place)
    else:
        why = say("No such folder: {folder}.", folder=place)
    return NoRunError(
        what="No run can be read." if fault else "No run found.",
        why=why,
        what_to_do="Run the job with DDP_PROBE=1, or name a run, a file or a plain log: python -m ddp_probe report PATH. "
        "Of a job that hangs now: python -m ddp_probe attach.",
    )


def forbidden(path: str) -> Optional[UnusableError]:
    """Return the error for a path that this user may not look into, by the first folder on its way that is closed; None if none is."""
    parts = os.path.abspath(path).split(os.sep)
    for end in range(2, len(parts) + 1):
        place = os.sep.join(parts[:end])
        try:
            status = os.stat(place)
            flags = os.X_OK
            if end == len(parts):
                flags = os.R_OK | os.X_OK if stat.S_ISDIR(status.st_mode) else os.R_OK
            if not os.access(place, flags):
                return _closed(place, status)
        except (OSError, ValueError):  # It does not exist.
            return None
    return None


def _closed(place: str, seen: os.stat_result) -> UnusableError:
    owner = _name_of(seen.st_uid)
    return UnusableError(
        what=say("{path} may not be read by {user}.", path=place, user=_name_of(os.geteuid())),
        why=say(
            "It belongs to {owner}, and its permissions are {permissions}.",
            owner=owner,
            permissions=stat.filemode(seen.st_mode),
        ),
        what_to_do=say(
            "Let {owner} run: chmod -R g+rX {path}. With DDP_PROBE_UMASK=027 in its environment a job makes its run readable for the group.",
            owner=owner,
            path=shlex.quote(place),
        ),
    )


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return "user %d" % user


def _forbidden_in(path: str) -> Optional[UnusableError]:
    """Return the same for a folder or the first closed one in it."""
    unusable = forbidden(path)
    with contextlib.suppress(OSError):
        inner = [entry.path for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False)] if unusable is None else []
        unusable = next(filter(None, map(forbidden, inner)), unusable)
    return unusable


def _fault(folder: str) -> str:
    """Return why a folder cannot be read; empty if it can, or does not exist."""
    try:
        os.listdir(folder)
    except FileNotFoundError:
        return ""
    except OSError as exc:
        return exc.strerror or str(exc)
    return ""


def sources(paths: Sequence[str]) -> Sources:
    """Return the files for the paths of a command line."""
    gathered = Sources([], [], [], {}, 0, [])
    matched = [_matches(path) for path in paths] if paths else [([newest()], 0)]
    named: List[str] = []
    for matches, _ in matched:
        named += matches
    for path in named:
        _take(path, gathered, alone=len(named) == 1)
    if not (gathered.events or gathered.texts or gathered.folds):
        closed = next(filter(None, map(_forbidden_in, gathered.unreadable)), None)
        if closed is not None:
            raise closed
    if not (gathered.events or gathered.texts or gathered.folds) and all(why == _EMPTY for why in gathered.unreadable.values()):
        raise UnusableError(what=say("No run in {path}.", path=named[0]), why=_EMPTY, what_to_do=_LIST)
    if len(gathered.texts) > MOST_TEXTS:
        raise _too_many(
            say(
                "{count} of these files were not written by the probe; at most {most} are read.",
                count=len(gathered.texts),
                most=MOST_TEXTS,
            )
        )
    files = (_once(gathered.events), _once(gathered.texts), _once(gathered.folders))
    return Sources(*files, gathered.unreadable, max(number for _, number in matched), _once(gathered.folds))


def files(paths: Sequence[str], what: str) -> Sources:
    """Return the files for a command that needs them themselves, by its name."""
    gathered = sources(paths)
    if gathered.folds:
        raise UsageError(
            say("{path} is a fold, which keeps what a report needs and no lines.", path=gathered.folds[0]),
            say(
                "'python -m ddp_probe report' reads it. {command} needs the run's own files: name their folder.",
                command=what,
            ),
        )
    return gathered


def _matches(path: str) -> Tuple[List[str], int]:
    """Return the paths for a name, and the number of the requested launch. An existing path is used as it is, even if it looks like a pattern."""
    if not path:
        raise UsageError("A path is empty.", "Check the variable that it comes from. Without any path, the newest run is read.")
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
        matches = sorted(itertools.islice(glob.iglob(name), MOST_MATCHES + 1))
        if len(matches) > MOST_MATCHES:
            raise _too_many(say("{pattern} matches more than {most} files.", pattern=name, most=MOST_MATCHES))
        if matches:
            return matches, number
    raise _nothing(path)


def _too_many(why: str) -> UsageError:
    return UsageError(say("Too many files. {why}", why=why), "Name the folder of a run, or the logs of one job.")


def _readings(path: str) -> List[Tuple[str, int]]:
    """Split RUN:3, the third launch in a run's folder, unless a path of that name exists."""
    match = re.fullmatch(r"(.+):([1-9][0-9]{0,6})", path, re.DOTALL)
    return [(path, 0), (match[1], int(match[2]))] if match else [(path, 0)]


def _several(name: str, begun: List[str]) -> UnusableError:
    names = [os.path.basename(run) for run in begun]
    more = " and %d more" % (len(names) - _SHOWN) if len(names) > _SHOWN else ""
    return UnusableError(
        what=say("Several runs begin with {name}.", name=name),
        why="%s%s." % (", ".join(names[:_SHOWN]), more),
        what_to_do=say("Write more of the name. The newest of them is {name}.", name=names[0]),
    )


def _nothing(path: str) -> UnusableError:
    closed = forbidden(path) or forbidden(os.path.join(root(), path))
    if closed is not None:
        return closed
    import difflib

    close = difflib.get_close_matches(path, [os.path.basename(run) for run in runs(root())], n=1)
    return UnusableError(
        what=say("No such file or folder: {path}.", path=path),
        why=say(
            "It does not match a file, folder or pattern, and no run in {folder} begins with it.",
            folder=os.path.abspath(root()),
        ),
        what_to_do=say("Did you mean {name}?", name=close[0]) if close else _LIST,
    )


def _take(path: str, into: Sources, *, alone: bool) -> None:
    if path.endswith(ledger_schema.SUFFIXES):
        _take_ledger(path, into)
        return
    if not os.path.isdir(path):
        files = into.events if _is_events(path) else into.texts
        (into.folds if fold_file.is_fold(path) else files).append(path)
        return
    try:
        os.listdir(path)
    except OSError as exc:
        into.unreadable[path] = exc.strerror or str(exc)
        return
    inner = _event_files(path)
    if inner:
        siblings = os.path.dirname(os.path.realpath(path))
        parts = launches.beside(path, lambda: runs(siblings)) if alone else [path]
        into.folders.extend(parts)
        for part in parts:
            into.events.extend(inner if part == path else _event_files(part))
        return
    folds = sorted(glob.glob(os.path.join(glob.escape(path), "*" + fold_file.SUFFIX)))
    if folds:
        into.folds.extend(folds)
        return
    below = runs(path)
    if below:  # a folder of runs: the newest, as without a path
        _take(below[0], into, alone=alone)
        return
    into.unreadable[path] = _EMPTY


def _take_ledger(path: str, into: Sources) -> None:
    """Take the log that a ledger belongs to."""
    log = re.sub(r"\.ledger(\.txt)?$", ".jsonl", path)
    if os.path.exists(log):
        into.events.append(log)
    else:
        into.unreadable[path] = "The log that this ledger belongs to is not beside it."


def _event_files(folder: str) -> List[str]:
    """Return the files of the probe in a folder; a run of ten thousand ranks has twice as many files, so each name is looked at once."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [os.path.join(folder, name) for name in sorted(names) if is_ours(name)]


def is_ours(path: str) -> bool:
    """Return whether a file has a name that the probe gives to its logs."""
    name = os.path.basename(path)
    return name.endswith(_END) and name.startswith(_STARTS)


def jobs_logs(folders: Sequence[str]) -> List[str]:
    """Return the other files of JSON lines in the folders of a run: those that the job wrote."""
    logs: List[str] = []
    for folder in folders:
        with contextlib.suppress(OSError):
            logs += [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(_END) and not is_ours(name)]
    return logs


def _is_events(path: str) -> bool:
    """Return whether a file was written by the probe, judged by its name or its first line."""
    if is_ours(path):
        return True
    try:
        with open_bytes(path) as stream:
            head = stream.read(200)
    except OSError:
        return False
    return head.startswith(b'{"event":')


def _once(items: List[str]) -> List[str]:
    """Drop duplicates, also if the same file was named in different ways."""
    folders: Dict[str, str] = {}
    return list({_real(item, folders): item for item in reversed(items)}.values())[::-1]


def _real(path: str, folders: Dict[str, str]) -> str:
    """Return the real path; that of a folder is looked up once for all of its files."""
    folder, name = os.path.split(path)
    if not name or os.path.islink(path):
        return os.path.realpath(path)
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    return os.path.join(folders[folder], name)
