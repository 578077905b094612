"""Reads files into one Run; from_lines does the same with a string, for the examples of rules and for tests."""

import contextlib
import gc
import json
import os
from typing import Any, Dict, Iterator, List, Optional, Sequence

from ddp_probe.reading import (
    bundled,
    children,
    clocks,
    failures,
    find,
    folds,
    gathered,
    launches,
    ledger_text,
    outside_end,
    process_files,
    spawned,
    text,
)
from ddp_probe.reading._lines import lines
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.reading.process_files import Meter, Progress
from ddp_probe.reading.process_reader import ProcessReader
from ddp_probe.reading.shape import shape
from ddp_probe.reading.shared import SharedParts

_LATER = 600.0


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
    run.read_at = bundled.read_at()
    shared, meter = SharedParts(), Meter([*sources.events, *sources.texts, *sources.folds], progress)
    processes = process_files.read(sources.events, run.inventory, shared, meter, cores)
    for file in sources.texts:
        _text(file, run, meter)
    number = sources.launch
    if sources.folds:
        of_folds, asked = folds.read(sources.folds, run, shared, meter)
        processes, number = [*processes, *of_folds], number or asked
    return assemble(run, processes, number)


def assemble(run: Run, processes: List[LoggedProcess], number: int = 0) -> Run:
    """Build one launch from the processes: the one with this number, counted from 1, or else the most important one."""
    shape(run, _chosen(run, processes, number))
    clocks.align(run)
    spawned.place(run)
    run.failures = failures.collect(run, children.reported(run))
    outside_end.settle(run)
    for earlier in run.earlier_generations:
        earlier.failures = failures.collect(earlier, {})
    return run


def _chosen(run: Run, processes: List[LoggedProcess], number: int) -> List[LoggedProcess]:
    found = launches.split(processes)
    if len(found) < 2:
        return processes
    number = min(number, len(found)) or launches.choose(found) + 1
    chosen = found[number - 1]
    known = set(map(id, chosen))
    run.others = [process for process in processes if id(process) not in known and not process.is_launcher]
    used = {os.path.dirname(process.file) for process in chosen}
    run.folders = [folder for folder in run.folders if any(one == folder or one.startswith(folder + os.sep) for one in used)]
    run.inventory.notes.append(_one_of(number, found))
    return chosen


def _one_of(number: int, found: List[List[LoggedProcess]]) -> str:
    """Say that there are other launches, and how to read them."""
    folders = sorted({os.path.dirname(process.file) for launch in found for process in launch})
    which = "the newest" if number == len(found) else "the last that did not end well" if number == launches.choose(found) + 1 else "as requested"
    how = "%s:1 reads the first one" % folders[0] if len(folders) == 1 else "to read another one, name its folder alone"
    return "these files are from %d launches; this is number %d, %s; %s" % (len(found), number, which, how)


def from_lines(log: str) -> Run:
    """Build a Run from a short log: events as JSON lines and lines of ledgers, or the text that a job printed.

    The ranks with a ledger that have not ended still run, and the log is read ten minutes after its last line.
    """
    run = Run()
    if not log.lstrip().startswith(('{"event"', ledger_text.WORD)):
        run.texts.append(text.read(log.encode("utf-8", "replace").splitlines(keepends=True), "example"))
        return assemble(run, [])
    written = log.strip().splitlines()
    ledgers = [line for line in written if line.startswith(ledger_text.WORD)]
    events = [json.loads(line) for line in written if not line.startswith(ledger_text.WORD)]
    found = ledger_text.written(ledgers, max([_size_told(event) for event in events] or [0]))
    known = {event.get("rank") for event in events}
    events += [{"event": "process.start", "rank": rank, "world_size": _world(found, events)} for rank in sorted(set(found) - known)]
    assemble(run, list(_processes(events, run, found)))
    run.read_at = ledger_text.START + _LATER
    run.running.update(process.rank for process in run.processes if process.rank in found and process.end is None and process.death is None)
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
    fault = process_files.unreadable(file)
    if not fault:
        try:
            with open(file, "rb") as stream:
                log = text.read((line for _, line, _ in lines(stream, text.LONGEST, text.LONGEST >> 3)), file)
            run.texts.append(log)
            run.inventory.notes.extend(text.left_out(log))
            run.inventory.files.append(file)
            meter.add(process_files.size(file))
            return
        except OSError as exc:
            fault = exc.strerror or str(exc)
    run.inventory.unreadable[file] = fault
