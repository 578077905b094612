"""Reads the files of many processes into their summaries, line by line, on several cores if the files are large."""

import os
import stat
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence

from ddp_probe.reading import host_fold, on_cores, rank_ledger
from ddp_probe.reading.inventory import Inventory
from ddp_probe.reading.log_lines import decode, lines, seconds
from ddp_probe.reading.logged_call import GrowingCalls, LoggedCall, LogLine, packed
from ddp_probe.reading.model import LoggedProcess
from ddp_probe.reading.shared_parts import SharedParts
from ddp_probe.shared import schema
from ddp_probe.shared.regular_files import open_bytes

NO_EVENT = "It contains no event."
_WORDS, _FRAMES = 1 << 14, 200  # Characters of a message and frames of a traceback that are kept; a probe does not write more.
_OPEN = 1000  # At most this many calls without an end; a file with more was not written by the probe.


class ProcessReader:
    """Takes the lines of one file in order; can continue when the file has grown."""

    def __init__(self, file: str, inventory: Inventory, shared: SharedParts) -> None:
        self.process = LoggedProcess(file)
        self._inventory = inventory
        self._shared = shared
        self._calls = GrowingCalls()
        self._open: Dict[int, LoggedCall[schema.Event]] = {}
        self._last: Optional[schema.Event] = None
        self._base: Optional[float] = None
        self._untimed = 0
        self._last_line = 0
        self._numbered = 0
        self._highest = -1
        self._last_hole = 0
        self._cut_short = self._began_again = 0  # Lists of coverage with a gap right after a line, and how often a list begins.
        self._first_target = ""

    def line(self, number: int, text: bytes, whole: bool) -> None:
        """Add one line."""
        decoded = decode(text)
        if decoded.event is not None:
            self._event(decoded.event, number)
        elif decoded.unknown:
            self.process.unknown[decoded.unknown] = self.process.unknown.get(decoded.unknown, 0) + 1
        elif whole or decoded.fault != "not JSON":
            self._inventory.skip(self.process.file, decoded.fault)
        else:
            self._inventory.skip(self.process.file, "torn")

    def _event(self, event: schema.Event, line: int) -> None:
        process, phase = self.process, event.phase
        process.lines += 1
        self._number(event.seq, line)
        _shorten(event)
        when = self._when(event)
        if isinstance(event, schema.Collective):
            pass  # The ledger has every call; these are some of them, for somebody with grep.
        elif phase == "begin":
            call = LoggedCall(event, process.file, line, when)
            self._calls.keep(call)
            if event.span is not None and len(self._open) < _OPEN:
                self._open[event.span] = call
        elif phase in ("end", "error"):
            begun = self._open.pop(event.span, None) if event.span is not None else None
            call = begun or LoggedCall(event, process.file, line, when)
            if begun is None:
                self._calls.keep(call)
            call.end, call.line_after, call.until = event, line, when
            if phase == "error":
                self._calls.keep_failed(call)
        else:
            call = LoggedCall(event, process.file, line, when)
            call.end, call.line_after, call.until = event, line, when
            self._calls.keep(call)
            self._point(event, when, line)
        self._last, process.last_when = event, when
        self._last_line = line

    def _number(self, seq: int, line: int) -> None:
        """Track sequence numbers; two threads may write their lines in either order."""
        if seq < 0:
            return
        self._numbered += 1
        if seq > self._highest + 1:
            self._last_hole = line
            self._cut_short += seq == self._highest + 2 and isinstance(self._last, schema.Coverage)
        self._highest = max(self._highest, seq)

    def _point(self, event: schema.Event, when: float, line: int) -> None:
        process = self.process
        if isinstance(event, (schema.ProcessStart, schema.LauncherStart)):
            if process.start is None:
                process.start, process.start_when = event, when
                self._identity(event)
        elif isinstance(event, (schema.ProcessEnd, schema.LauncherEnd)):
            process.end = event
        elif isinstance(event, schema.Full):
            process.full = True
        elif isinstance(event, schema.Coverage):
            self._first_target = self._first_target or event.target
            self._began_again += event.target == self._first_target
            if not event.target and line == self._last_hole and not isinstance(self._last, schema.Coverage):
                self._began_again += 1  # A first try left no line.
                self._cut_short += 1

    def _identity(self, event: schema.Event) -> None:
        process = self.process
        process.rank, process.local_rank, process.world_size = event.rank, event.local_rank, event.world_size
        process.host, process.pid, process.run = event.host, event.pid, event.run

    def _when(self, event: schema.Event) -> float:
        """Use the monotonic clock, and the wall clock only once: the wall clock can be set while a job runs."""
        if not event.mono_ns:
            stamp = seconds(event.ts)
            self._untimed += 1
            return stamp if stamp is not None else float(self._untimed)
        if self._base is None:
            stamp = seconds(event.ts)
            self._base = 0.0 if stamp is None else stamp - event.mono_ns * 1e-9
        return self._base + event.mono_ns * 1e-9

    def finish(self) -> LoggedProcess:
        """Return the process; if its first line is missing, its last line identifies it."""
        process, last = self.process, self._last
        process.last_at = LogLine(process.file, self._last_line)
        # A signal handler that raises while the last lines are written costs one of them, and all are written again.
        again = min(self._cut_short, self._began_again - 1) if process.end is not None else 0
        process.holes = max(0, self._highest + 1 - self._numbered - max(0, again))
        if process.holes:
            self._close_over_holes()
        if process.start is None and last is not None:
            self._identity(last)
        if last is not None:
            process.last_world_size = last.world_size
        if last is not None and last.rank is not None:  # Under Lightning the processes of the second host do not know it before.
            process.rank = last.rank
        if process.world_size is None:  # A child of mp.spawn learns it from init_process_group.
            process.world_size = process.last_world_size
        self._pack()
        return process

    def _pack(self) -> None:
        """Keep the calls as light as can be: ten thousand ranks must fit in memory."""
        process, shared = self.process, self._shared
        kinds, calls = self._calls.finished(process.world_size or 0)
        for call in {*calls, *self._open.values()}:
            is_point = call.end is call.begin
            call.begin = shared.event(call.begin)
            if call.end is not None:
                call.end = call.begin if is_point else shared.event(call.end)
        process.kept = packed(process.file, shared.kinds(kinds), calls)
        process.kept.lines = shared.lines(process.kept.lines)
        process.open = tuple(self._open.values())
        process.start, process.end = (None if event is None else shared.event(event) for event in (process.start, process.end))

    def _close_over_holes(self) -> None:
        """Treat a call that began before a gap as returned: its end may be in the missing lines, and the process continued."""
        for span, call in list(self._open.items()):
            if call.line < self._last_hole:
                call.end = type(call.begin)()
                del self._open[span]


def _shorten(event: schema.Event) -> None:
    """Cut an exception's message to the length that a probe writes: rules search it."""
    if event.failure is not None:
        event.failure.message = _short(event.failure.message)
        del event.failure.frames[_FRAMES // 2 : max(len(event.failure.frames) - _FRAMES // 2, _FRAMES // 2)]
    if isinstance(event, schema.LauncherChild):
        event.message = _short(event.message)


def _short(message: str) -> str:
    return message if len(message) <= _WORDS else "%s … %s" % (message[: _WORDS * 3 // 4], message[-_WORDS // 4 :])


Progress = Callable[[int, int], None]  # bytes read, total bytes
_LARGE = 32 << 20  # Bytes; fewer are read faster than children are started.
_TOGETHER = 64  # Files of one part: a child sends the fold of a part.


class Meter:
    """Reports how many of all bytes have been read."""

    def __init__(self, files: Iterable[str], progress: Optional[Progress]) -> None:
        self._progress = progress
        self._read = 0
        self._all = sum(map(size, files)) if progress else 0

    def add(self, count: int) -> None:
        """Count bytes that were read."""
        self._read += count
        if self._progress is not None:
            self._progress(self._read, max(self._all, self._read))


def size(file: str) -> int:
    """Return the size of a file; 0 if it is unknown."""
    try:
        return os.stat(file).st_size
    except OSError:
        return 0


def unreadable(file: str) -> str:
    """Return why a file cannot be read; opening a pipe or a device would block forever."""
    try:
        mode = os.stat(file).st_mode
    except OSError as exc:
        return exc.strerror or str(exc)
    return "" if stat.S_ISREG(mode) else "Not a regular file."


def read(files: Sequence[str], inventory: Inventory, shared: SharedParts, meter: Meter, cores: int = 0) -> List[LoggedProcess]:
    """Return the processes of these files, in their order, read on at most this many cores."""
    together = max(_TOGETHER, len(files) // on_cores.MOST + 1)
    parts = [files[first : first + together] for first in range(0, len(files), together)]
    readers = min(cores or on_cores.available(), len(parts))
    if readers < 2 or sum(map(_on_disk, files)) < _LARGE:
        return _here(files, inventory, shared, meter)
    return _on_several(parts, readers, inventory, shared, meter)


def _on_disk(log: str) -> int:
    """Return how many bytes of a process there are to read: of its ledger, what has been written."""
    try:
        return size(log) + os.stat(log[: -len("jsonl")] + "ledger").st_blocks * 512
    except OSError:
        return size(log)


def _here(files: Sequence[str], inventory: Inventory, shared: SharedParts, meter: Meter) -> List[LoggedProcess]:
    """Read files one after another in this process."""
    processes: List[LoggedProcess] = []
    for file in files:
        process = _process(file, inventory, shared, meter)
        if process is not None:
            processes.append(process)
    for process in processes:
        process.ledger_file = rank_ledger.find(process.file)
    return processes


def _process(file: str, inventory: Inventory, shared: SharedParts, meter: Meter) -> Optional[LoggedProcess]:
    fault = unreadable(file)
    reader = ProcessReader(file, inventory, shared)
    if not fault:
        try:
            with open_bytes(file) as stream:
                read = 0
                for number, line, whole in lines(stream):
                    reader.line(number, line, whole)
                    read += len(line)
                    if read >= 1 << 18:
                        meter.add(read)
                        reader.process.bytes, read = reader.process.bytes + read, 0
                reader.process.bytes += read
                meter.add(read)
        except OSError as exc:
            fault = exc.strerror or str(exc)
    if fault:
        inventory.unreadable[file] = fault
        return None
    process = reader.finish()
    inventory.files.append(file)
    inventory.lines += process.lines
    inventory.bytes += process.bytes
    if not process.lines:
        inventory.unreadable[file] = NO_EVENT
        return None
    return process


class _Part(NamedTuple):
    """What was read of some files."""

    processes: List[LoggedProcess]
    inventory: Inventory


def _on_several(parts: Sequence[Sequence[str]], readers: int, inventory: Inventory, shared: SharedParts, meter: Meter) -> List[LoggedProcess]:
    """Return the processes of all parts, read by this process and its children."""

    def here(number: int) -> _Part:
        read = Inventory()
        processes = _here(parts[number], read, shared, meter)
        for process in processes:
            process.read_ledger()  # Now, as children do, because the rules ask one after another.
        return _Part(processes, read)

    def there(number: int) -> bytes:
        read = Inventory()
        return host_fold.encode(host_fold.fold(_here(parts[number], read, shared, Meter((), None)), read))

    def arrived(data: bytes) -> _Part:
        folded = host_fold.decode(data)
        meter.add(folded.inventory.bytes)
        read = Inventory()
        read.add(folded.inventory)
        return _Part(host_fold.unfold(folded, shared), read)

    processes: List[LoggedProcess] = []
    for part in on_cores.each(len(parts), readers - 1, here, there, arrived):
        inventory.add(part.inventory)
        processes += part.processes
    return processes
