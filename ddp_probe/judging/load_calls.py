"""Finds the loads of checkpoints that ended a process, and the processes that wrote to the same file meanwhile."""

import bisect
import functools
import os
import re
from typing import Dict, List, NamedTuple, Optional, Tuple

import msgspec

from ddp_probe.checkpoints import tensor_names
from ddp_probe.checkpoints.tensor_names import Renaming
from ddp_probe.judging import change
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.reading.whole_ledger import LedgerSite, Record
from ddp_probe.shared import schema
from ddp_probe.shared.ledger_schema import PAIRED
from ddp_probe.shared.schema import Site

STREAM = "<stream>"  # What a save into memory has for a path; mmengine writes the bytes to disk right after it.
Saved = Tuple[LoggedProcess, "LoggedCall[schema.Save]"]
_RIGHT_AFTER = 60.0  # Seconds that writing such bytes may take.


class Broken(NamedTuple):
    """A load that failed, and whose failure the process did not survive."""

    process: LoggedProcess
    call: "LoggedCall[schema.Load]"
    failure: Failed

    @property
    def file(self) -> schema.CheckpointFile:
        """Return the file as it was before the load; its content is read after the load, if it has not changed meanwhile."""
        before = self.call.begin.file or schema.CheckpointFile()
        seen = self.call.end.file if isinstance(self.call.end, schema.Load) else None
        if seen is None or before.kind:
            return before
        return msgspec.structs.replace(seen, age=before.age)


class Race(NamedTuple):
    """Another process wrote to the file while it was read."""

    writer: Optional[LoggedProcess]
    save: "Optional[LoggedCall[schema.Save]]"
    overlap: Optional[float]  # Milliseconds; None if only the file's growth shows it.


def broken(run: Run) -> List[Broken]:
    """Return the loads that ended a process, by time."""
    return _failed(run, fatal=True)


def survived(run: Run) -> List[Broken]:
    """Return the loads that failed and that the job caught, by time."""
    return _failed(run, fatal=False)


def _failed(run: Run, fatal: bool) -> List[Broken]:
    failed: List[Broken] = []
    for failure in run.failures:
        if failure.fatal == fatal and failure.process is not None:
            loads = [call for call in failure.calls if isinstance(call.begin, schema.Load)]
            failed += [Broken(failure.process, load, failure) for load in loads]
    return sorted(failed, key=lambda broken: broken.call.when)


class Saves:
    """All saves of a run, by the file that they wrote: every rank may have a load to compare with them."""

    def __init__(self, run: Run) -> None:
        self._by_inode: Dict[Tuple[str, int], List[Saved]] = {}
        self._by_path: Dict[str, List[Saved]] = {}
        self._streams: List[Saved] = []
        self._ended: Dict[str, Tuple[List[float], List[Saved]]] = {}
        for process in run.processes:
            for save in process.calls(schema.Save):
                self._add(process, save)

    def _add(self, process: LoggedProcess, save: "LoggedCall[schema.Save]") -> None:
        inode = save.end.inode if isinstance(save.end, schema.Save) else None
        if save.begin.path == STREAM:
            self._streams.append((process, save))
        elif save.begin.path:
            self._by_path.setdefault(whole(process, save.begin.path), []).append((process, save))
        if inode is not None:
            self._by_inode.setdefault((process.host, inode), []).append((process, save))

    def of(self, load: Broken) -> List[Saved]:
        """Return the saves of the file that is loaded: by inode if one host has both, else by path."""
        by_inode = self._by_inode.get((load.process.host, load.file.inode), []) if load.file.inode is not None else []
        by_path = self._by_path.get(whole(load.process, load.file.path), []) if load.file.path else []
        return list({save: (process, save) for process, save in (*by_inode, *by_path)}.values())

    def of_path(self, process: LoggedProcess, path: str) -> List[Saved]:
        """Return the saves to a path of a process, on every host."""
        return self._by_path.get(whole(process, path), [])

    def last_ended(self, process: LoggedProcess, path: str, before: float) -> Optional[Saved]:
        """Return the last save to a path of a process, on any host, that had ended well before a time."""
        name = whole(process, path) if self._by_path else ""
        if name not in self._by_path:
            return None
        if name not in self._ended:
            saves = [save for save in self._by_path[name] if save[1].until is not None and save[1].failure is None]
            saves.sort(key=_until)
            self._ended[name] = list(map(_until, saves)), saves
        times, saves = self._ended[name]
        place = bisect.bisect_right(times, before)
        return saves[place - 1] if place else None

    def files(self) -> List[List[Saved]]:
        """Return the saves of each file, by time."""
        return [sorted(saves, key=lambda save: save[1].when) for saves in self._by_path.values()]

    def last_stream(self, load: Broken) -> Optional[Saved]:
        """Return the last save into memory before a load's end, by another process."""
        until = load.call.until or load.call.when
        near = [(process, save) for process, save in self._streams if save.when <= until and until - (save.until or until) < _RIGHT_AFTER]
        near = [save for save in near if save[0] is not load.process]
        return max(near, key=lambda save: save[1].when) if near else None


def _until(saved: Saved) -> float:
    return saved[1].until or 0.0


def race(saves: Saves, load: Broken) -> Optional[Race]:
    """Return who wrote to a file while it was read: by the spans of both calls, else by the growth of the file."""
    spans = [(_together(load.call, save), writer, save) for writer, save in saves.of(load) if writer is not load.process]
    together, writer, save = max(spans, key=lambda span: span[0], default=(0.0, None, None))
    if together > 0:
        return Race(writer, save, together * 1000)
    after = load.call.end.file_after if isinstance(load.call.end, schema.Load) else None
    if after is None or (after.size, after.mtime) == (load.file.size, load.file.mtime):
        return None
    last = saves.last_stream(load)
    return Race(last[0], last[1], None) if last is not None else Race(None, None, None)


def saved_before(saves: Saves, load: Broken) -> Optional[Saved]:
    """Return the last whole save of the same file before a load."""
    done = [(process, save) for process, save in saves.of(load) if save.until is not None and save.until <= load.call.when]
    return max(done, key=lambda save: save[1].until or 0.0) if done else None


def whole(process: LoggedProcess, path: str) -> str:
    """Return a path of a process with all its folders."""
    folder = process.started.cwd
    if path[:1] in ("", ".") or path[-1] == "/" or "//" in path or "/." in path:
        return os.path.normpath(os.path.join(folder, path))
    return path if path[0] == "/" else _within(folder) + path  # Ten thousand ranks load a hundred thousand files: most paths need no more.


@functools.lru_cache(maxsize=1 << 10)
def _within(folder: str) -> str:
    """Return what a relative path is added to."""
    return os.path.join(os.path.normpath(folder), "") if folder else ""


def _together(load: "LoggedCall[schema.Load]", save: "LoggedCall[schema.Save]") -> float:
    """Return for how many seconds both were under way; a save that never ended counts until the load's end; if its end is lost, it does not count."""
    if save.until is None and not save.open:
        return 0.0
    end = load.until if load.until is not None else load.when
    return min(end, save.until if save.until is not None else end) - max(load.when, save.when)


# The collectives in which two ranks met, by their ledgers: whether one rank can have waited for what the other has done.


class Meeting(NamedTuple):
    """A collective of two ranks, as the second rank made it."""

    op: str
    number: int
    site: Optional[LedgerSite]


def last_meeting(first: LoggedProcess, until: float, second: LoggedProcess, before: float) -> Optional[Meeting]:
    """Return the last collective that the first rank entered before `until` and the second left before `before`, if none of the second is later.

    None also says that this is unknown: a ledger is missing, its ring no longer has the calls, or the last one is asynchronous.
    """
    theirs = {_key(record): first.ledger.when(record.entered_ns) + first.offset for record in _collectives(first)} if first.ledger else {}
    ours: List[Record] = [record for record in _collectives(second) if record.left_ns and _left(second, record) <= before]
    if not ours:
        return None
    last = max(ours, key=lambda record: record.left_ns)
    if last.is_async or theirs.get(_key(last), until) >= until:
        return None
    return Meeting(last.op, last.seq, last.site)


def _left(process: LoggedProcess, record: Record) -> float:
    return (process.ledger.when(record.left_ns) if process.ledger is not None else 0.0) + process.offset


def _collectives(process: LoggedProcess) -> List[Record]:
    if process.ledger is None:
        return []
    return [record for record in process.whole_ledger().records if record.group is not None and record.seq and record.op not in PAIRED]


def _key(record: Record) -> Tuple[str, int]:
    return (record.group.id if record.group is not None else "", record.seq)


# The single renaming that turns the names in a checkpoint into the model's, derived from what load_state_dict says about both.

_LIST = r"%s key\(s\) in (?:source )?state_dict: (?P<names>\"[^\"]+\"(?:, \"[^\"]+\")*)\."


def edit(renamed: Renaming, site: Optional[Site]) -> change.Argument:
    """Return the change: the state under the model's names."""
    return change.Argument(site, change.LOAD_STATE, "state_dict", renamed.expression("$was"), 0, was="state")


def renaming(message: str) -> Optional[Renaming]:
    """Return the renaming that explains all names of both lists; None if there is none, or if a list was cut."""
    if "size mismatch" in message:
        return None
    return tensor_names.renaming(_names("Unexpected", message), _names("Missing", message))


def _names(which: str, message: str) -> List[str]:
    match = re.search(_LIST % which, message)
    return re.findall(r"\"([^\"]+)\"", match.group("names")) if match else []
