"""Reads files into one Run, on one clock; from_lines does the same with a string, for the examples of rules and for tests."""

import contextlib
import gc
import glob
import json
import os
import re
from itertools import chain
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from ddp_probe.reading import bundled, failures, find, fold_file, gathered, host_fold, job_line, launches, ledger_text, process_files
from ddp_probe.reading.failures import consequence
from ddp_probe.reading.fold_file import InvalidFoldError
from ddp_probe.reading.host_fold import HostFold
from ddp_probe.reading.log_lines import is_text, lines
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Death, Failed, LoggedProcess, Run
from ddp_probe.reading.process_files import Meter, ProcessReader, Progress
from ddp_probe.reading.shape import settle, shape
from ddp_probe.reading.shared_parts import SharedParts
from ddp_probe.shared import schema
from ddp_probe.shared.errors import UnusableError
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.shared.schema import Failure
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, quoted

_LATER = 600.0
_HEAD = 4096  # Bytes that show whether a file is a text.


def load(paths: Sequence[str] = (), progress: Optional[Progress] = None, cores: int = 0) -> Run:
    """Read the run at these paths, the newest run if there are none, on at most this many cores, all of them if it is 0."""
    with without_collector():
        run = _load(paths, progress, cores)
        gathered.note(run, paths)
        run.is_newest = not paths
        return run


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Disable the garbage collector: while reading it finds almost nothing, and scanning millions of objects takes longer than reading them.

    A failure and its process refer to each other, so objects of an earlier reading are collected first: `report --follow` reads many times.
    """
    on = gc.isenabled()
    gc.disable()
    if gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()
    try:
        yield
    finally:
        gc.freeze()
        if on:
            gc.enable()


def _load(paths: Sequence[str], progress: Optional[Progress], cores: int) -> Run:
    sources = find.sources(paths)
    run = Run()
    run.folders = sources.folders
    run.inventory.unreadable.update({**sources.unreadable, **bundled.unreadable()})
    run.read_at, run.bundle = bundled.read_at(), bundled.current()
    shared, meter = SharedParts(), Meter([*sources.events, *sources.texts, *sources.folds], progress)
    processes = process_files.read(sources.events, run.inventory, shared, meter, cores)
    for file in sources.texts:
        _text(file, run, meter)
    number = sources.launch
    if sources.folds:
        of_folds, asked = read_folds(sources.folds, run, shared, meter)
        processes, number = [*processes, *of_folds], number or asked
    return assemble(run, processes, number)


def assemble(run: Run, processes: List[LoggedProcess], number: int = 0) -> Run:
    """Build one launch from the processes: the one with this number, counted from 1, or else the most important one."""
    shape(run, _chosen(run, processes, number))
    align_clocks(run)
    job_line.place_spawned(run)
    run.failures = failures.collect(run, reported_failures(run))
    settle(run)
    for earlier in run.earlier_generations:
        earlier.failures = failures.collect(earlier, {})
    return run


def _chosen(run: Run, processes: List[LoggedProcess], number: int) -> List[LoggedProcess]:
    groups = launches.split(processes)
    if len(groups) < 2:
        return processes
    number = min(number, len(groups)) or launches.choose(groups) + 1
    chosen = groups[number - 1]
    own = set(map(id, chosen))
    run.others = [process for process in processes if id(process) not in own and not process.is_launcher]
    used = {os.path.dirname(process.file) for process in chosen}
    run.folders = [folder for folder in run.folders if any(path == folder or path.startswith(folder + os.sep) for path in used)]
    run.inventory.notes.append(_other_launches(number, groups))
    return chosen


def _other_launches(number: int, groups: List[List[LoggedProcess]]) -> Text:
    """Say that there are other launches, and how to read them."""
    folders = sorted({os.path.dirname(process.file) for process in chain.from_iterable(groups)})
    which = say("as requested")
    if number == len(groups):
        which = say("the newest")
    elif number == launches.choose(groups) + 1:
        which = say("the last that did not end well")
    how = say("to read another one, name its folder alone")
    if len(folders) == 1:
        how = say("{folder}:1 reads the first one", folder=quoted(folders[0]))
    template = "these files are from {count} launches; this is number {number}, {which}; {how}"
    return say(template, count=len(groups), number=number, which=which, how=how)


def from_lines(log: str) -> Run:
    """Build a Run from a short log: events as JSON lines and lines of ledgers, or the text that a job printed.

    The ranks with a ledger that have not ended still run, and the log is read ten minutes after its last line.
    """
    run = Run()
    if not log.lstrip().startswith(('{"event"', ledger_text.WORD)):
        from ddp_probe.reading import text

        run.texts.append(text.read(log.encode("utf-8", "replace").splitlines(keepends=True), "example"))
        return assemble(run, [])
    written = log.strip().splitlines()
    ledgers = [line for line in written if line.startswith(ledger_text.WORD)]
    events = [json.loads(line) for line in written if not line.startswith(ledger_text.WORD)]
    files = ledger_text.written(ledgers, max([_size_told(event) for event in events] or [0]))
    known = {event.get("rank") for event in events}
    events += [{"event": "process.start", "rank": rank, "world_size": _world(files, events)} for rank in sorted(set(files) - known)]
    assemble(run, list(_processes(events, run, files)))
    run.read_at = ledger_text.START + _LATER
    run.running.update(process.rank for process in run.processes if process.rank in files and process.end is None and process.death is None)
    return run


def _size_told(event: Dict[str, Any]) -> int:
    return max(int(event.get("world_size") or 0), int(event.get("rank") or 0) + 1)


def _world(ledgers: Dict[int, bytes], events: List[Dict[str, Any]]) -> int:
    return max([*(rank + 1 for rank in ledgers), *(_size_told(event) for event in events)])


def _processes(events: List[Dict[str, Any]], run: Run, ledgers: Dict[int, bytes]) -> Iterator[LoggedProcess]:
    """Yield the processes that these events and ledgers are of."""
    readers: Dict[str, ProcessReader] = {}
    shared = SharedParts()
    for number, told in enumerate(events):
        event: Dict[str, Any] = {"phase": "point", "mono_ns": (number + 1) * 10**9, "host": "node1", **told}
        is_launcher = event["event"].startswith(("launcher.", "cards.")) and event.get("rank") is None
        name = "launcher.%s.jsonl" % event["host"] if is_launcher else "rank%05d.%s.jsonl" % (event.get("rank") or 0, event["host"])
        reader = readers.setdefault(name, ProcessReader(name, run.inventory, shared))
        reader.line(reader.process.lines + 1, json.dumps(event).encode(), True)
    for reader in readers.values():
        process = reader.finish()
        data = None if process.is_launcher or process.rank is None else ledgers.get(process.rank)
        if data is not None:
            process.ledger_file, process.ledger_data = process.file[: -len("jsonl")] + "ledger", data
        yield process


def _text(file: str, run: Run, meter: Meter) -> None:
    from ddp_probe.reading import text  # Its expressions take as long to compile as a small run to read.

    fault = process_files.unreadable(file)
    if not fault:
        try:
            with open_bytes(file) as stream:
                if not is_text(stream.read(_HEAD)):
                    run.inventory.unreadable[file] = "It is not a text."
                    return
                stream.seek(0)
                log = text.read((line for _, line, _ in lines(stream, text.LONGEST, text.LONGEST >> 3)), file)
            run.texts.append(log)
            run.inventory.notes.extend(text.left_out(log))
            run.inventory.files.append(file)
            meter.add(process_files.size(file))
            return
        except OSError as exc:
            fault = exc.strerror or str(exc)
    run.inventory.unreadable[file] = fault


# Aligns the clocks of several hosts at the calls that all ranks leave at the same time.

# A rank leaves these calls only after all ranks have entered: they end at the same time, to within milliseconds.
_COMMON = (schema.InitProcessGroup, schema.Wrap)


def align_clocks(run: Run) -> None:
    """Shift each host's clock to that of the host with the most ranks, and note the largest difference."""
    hosts: Dict[str, List[LoggedProcess]] = {}
    for process in (*run.processes, *run.earlier):
        hosts.setdefault(process.host, []).append(process)
    if len(hosts) < 2:
        return
    from statistics import median

    marks = {host: _marks(processes, median) for host, processes in hosts.items()}
    first = max(hosts, key=lambda host: (len(hosts[host]), host))
    offsets: Dict[str, float] = {first: 0.0}
    for host in set(hosts) - {first}:
        both = set(marks[host]) & set(marks[first])
        if both:
            offsets[host] = median(marks[first][name] - marks[host][name] for name in both)
    if len(offsets) > 1:
        run.inventory.clock_spread = max(offsets.values()) - min(offsets.values())
    unknown = sorted(set(hosts) - set(offsets))
    if unknown:
        run.inventory.notes.append(
            say("The clocks of {hosts} could not be aligned: they share no event with {first}.", hosts=listed(unknown), first=first)
        )
    for process in (*run.processes, *run.earlier, *run.launchers):
        if offsets.get(process.host):
            process.shift(offsets[process.host])


def _marks(processes: List[LoggedProcess], median: Callable[[List[float]], float]) -> Dict[str, float]:
    marks: Dict[str, float] = {}
    for kind in _COMMON:
        ends: List[float] = []
        for process in processes:
            call = process.first(kind)
            if call is not None and call.until is not None and call.failure is None:
                ends.append(call.until)
        if ends:
            marks[str(kind.__struct_config__.tag)] = median(ends)
    return marks


# The exceptions of children that launchers report.

_RAY = re.compile(r"\(pid=(\d{1,10})[,)]")
_WHO = re.compile(r"^-- Process (\d{1,7}) terminated with the following error", re.MULTILINE)


def reported_failures(run: Run) -> Dict[int, Failed]:
    """Return the children's exceptions that only launchers report: multiprocessing catches them and passes their text to the parent."""
    by_rank: Dict[int, Failed] = {}
    first: Dict[str, Death] = {}
    for death in run.deaths:
        if death.first:
            first.setdefault(death.host, death)
    by_local = {(process.host, process.local_rank): process.rank for process in run.processes}
    for launcher in run.launchers:
        child = first.get(launcher.host)
        for failure, when, at in _raised(launcher):
            carried = _carried(failure, launcher)
            if failure.type.endswith("ProcessRaisedException"):
                rank = child.rank if child is not None else by_local.get((launcher.host, _named(failure)))
            else:
                rank = _of_pool(carried, failure, [process for process in run.processes if process.host == launcher.host])
            if rank is not None and carried is not None:  # torch 1.12 reports no pid
                carried.at, carried.when, carried.rank = at, when, rank
                by_rank[rank] = carried
    return by_rank


def _carried(failure: Failure, launcher: LoggedProcess) -> Optional[Failed]:
    """Return the exception whose traceback is text in another exception: in its message, or in that of its cause, as pools of Python do."""
    from ddp_probe.reading import text

    for said in filter(None, (failure.message, failure.cause_message)):
        raised = [failed for failed in text.read(said.encode("utf-8", "replace").splitlines(keepends=True), launcher.file).failures if failed.type]
        if raised:
            return raised[-1]
    return None


def _of_pool(carried: Optional[Failed], failure: Failure, processes: List[LoggedProcess]) -> Optional[int]:
    """Return the worker of a pool that raised it: the one that Ray names, else the only one that was in no call, or was in one if it lost another."""
    workers = [process for process in processes if process.started.role == "promoted" and process.end is None and process.rank is not None]
    named = _RAY.search(failure.message)
    if named is not None:
        workers = [process for process in workers if process.pid == int(named.group(1))]
    elif carried is not None:
        workers = [process for process in workers if _in_call(process) == bool(consequence(carried.text))]
    return workers[0].rank if len(workers) == 1 else None


def _in_call(process: LoggedProcess) -> bool:
    """Tell whether the last thing that a process did was a call in which it waited for others, or lost one."""
    kept = process.ledger
    if kept is None:
        return False
    last = [kept.last.state] if kept.last is not None else []
    return bool(set(last) & {"open", "raised"}) or any(phase.name == "backward" and phase.state in ("open", "raised") for phase in kept.phases)


def _named(failure: Failure) -> int:
    """Return the child that torch names in its message, or -1: a program that joins its children, like Lightning, does not report their ends."""
    match = _WHO.search(failure.message)
    return int(match.group(1)) if match else -1


def _raised(launcher: LoggedProcess) -> List[Tuple[Failure, float, LogLine]]:
    """Return the exceptions from starting or joining the children, caught or not."""
    calls = [call for call in launcher.calls(schema.LauncherGroup) if call.failure is not None]
    raised = [(call.failure, call.until or call.when, call.ended_at or call.at) for call in calls if call.failure is not None]
    if launcher.end is not None and launcher.end.failure is not None:
        raised.append((launcher.end.failure, launcher.last_when, launcher.last_at))
    return raised


# Reads folds, which each host wrote from its files: together they are one run.


def read_folds(paths: Sequence[str], run: Run, shared: SharedParts, meter: Meter) -> Tuple[List[LoggedProcess], int]:
    """Return the processes of all folds, in the order that their files would have in one folder, and the launch that was asked for.

    Each fold stands for a folder. One that cannot be read is noted, and the others are read.
    """
    unfolded: List[LoggedProcess] = []
    launch, bad = 0, 0
    run.read_at = 0.0
    for path in paths:
        try:
            folded, processes = _unfolded(path, shared)
        except UnusableError as exc:
            bad += 1
            if bad == len(paths):
                raise
            run.inventory.unreadable[path] = exc.why
            continue
        unfolded += processes
        run.inventory.add(folded.inventory, path + "/")
        run.read_at, launch = max(run.read_at, folded.made), max(launch, folded.launch)
        meter.add(process_files.size(path))
    run.folders += _sources(paths)
    run.inventory.files.sort(key=os.path.basename)
    return sorted(unfolded, key=lambda process: os.path.basename(process.file)), launch


def _sources(paths: Sequence[str]) -> List[str]:
    """Return the folder of the folds if all that it holds are read, else the folds."""
    folders = {os.path.dirname(path) for path in paths}
    if len(paths) < 2 or len(folders) > 1:
        return list(paths)
    folder = folders.pop()
    there = glob.glob(os.path.join(glob.escape(folder), "*" + fold_file.SUFFIX))
    return [folder or "."] if set(there) == set(paths) else list(paths)


def _unfolded(path: str, shared: SharedParts) -> Tuple[HostFold, List[LoggedProcess]]:
    try:
        folded = host_fold.decode(fold_file.read(path))
        return folded, host_fold.unfold(folded, shared, path + "/")
    except OSError as exc:
        raise UnusableError(
            what=say("{path} cannot be read.", path=path),
            why=exc.strerror or str(exc),
            what_to_do="Check its permissions.",
        ) from exc
    except InvalidFoldError as exc:
        raise _not_usable(path, exc.args[0]) from exc


def _not_usable(path: str, why: str) -> UnusableError:
    what = say("{path} is not a usable fold.", path=path)
    return UnusableError(what=what, why=why, what_to_do="Write it again on its host.")
