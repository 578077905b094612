"""Reads files into one Run, on one clock; from_lines does the same with a string, for the examples of rules and for tests."""

import contextlib
import gc
import json
import os
from itertools import chain
from typing import Any, Dict, Iterator, List, Optional, Sequence

from ddp_probe.reading import bundled, failures, find, gathered, launches, ledger_text, process_files, spawn_line
from ddp_probe.reading.align_clocks import align_clocks
from ddp_probe.reading.folds_of_hosts import read_folds
from ddp_probe.reading.log_lines import is_text, lines
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.reading.process_files import Meter, ProcessReader, Progress
from ddp_probe.reading.reported_failures import reported_failures
from ddp_probe.reading.shape import settle, shape
from ddp_probe.reading.shared_parts import SharedParts
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import quoted

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
    spawn_line.place_spawned(run)
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
        return from_text(log)
    written = log.strip().splitlines()
    ledgers = [line for line in written if line.startswith(ledger_text.WORD)]
    events = [json.loads(line) for line in written if not line.startswith(ledger_text.WORD)]
    files = ledger_text.written(ledgers, max([_size_told(event) for event in events] or [0]))
    with_events = {event.get("rank") for event in events}
    silent = sorted(set(files) - with_events)
    events += [_start(rank, _world(files, events)) for rank in silent]
    assemble(run, list(_processes(events, run, files)))
    run.read_at = ledger_text.START + _LATER
    run.running.update(process.rank for process in run.processes if process.rank in files and process.end is None and process.death is None)
    return run


def from_text(log: str) -> Run:
    """Build a Run from the text that a job printed, whatever it looks like."""
    from ddp_probe.reading import text

    run = Run()
    run.texts.append(text.read(log.encode("utf-8", "replace").splitlines(keepends=True), "example"))
    return assemble(run, [])


def _size_told(event: Dict[str, Any]) -> int:
    return max(int(event.get("world_size") or 0), int(event.get("rank") or 0) + 1)


def _start(rank: int, world_size: int) -> Dict[str, Any]:
    return {"event": "process.start", "rank": rank, "world_size": world_size}


def _world(ledgers: Dict[int, bytes], events: List[Dict[str, Any]]) -> int:
    return max([*(rank + 1 for rank in ledgers), *(_size_told(event) for event in events)])


def _processes(events: List[Dict[str, Any]], run: Run, ledgers: Dict[int, bytes]) -> Iterator[LoggedProcess]:
    """Yield the processes that these events and ledgers are of."""
    readers: Dict[str, ProcessReader] = {}
    shared = SharedParts()
    for number, fields in enumerate(events):
        event: Dict[str, Any] = {"phase": "point", "mono_ns": (number + 1) * 10**9, "host": "node1", **fields}
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
