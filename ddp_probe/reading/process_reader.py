"""Reads the lines of one file into the summary of a process."""

from typing import Dict, Optional

from ddp_probe.reading._decode import decode
from ddp_probe.reading.kept_calls import GrowingCalls, packed
from ddp_probe.reading.logged_call import LoggedCall, LogLine
from ddp_probe.reading.model import Inventory, LoggedProcess
from ddp_probe.reading.shared import SharedParts
from ddp_probe.reading.stamp import seconds
from ddp_probe.shared import schema

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

    def line(self, number: int, text: bytes, whole: bool) -> None:
        """Add one line."""
        found = decode(text)
        if found.event is not None:
            self._event(found.event, number)
        elif found.unknown:
            self.process.unknown[found.unknown] = self.process.unknown.get(found.unknown, 0) + 1
        elif whole or found.fault != "not JSON":
            self._inventory.skip(self.process.file, found.fault)
        else:
            self._inventory.skip(self.process.file, "torn")

    def _event(self, event: schema.Event, line: int) -> None:
        process, phase = self.process, event.phase
        process.lines += 1
        self._number(event.seq, line)
        _shorten(event)
        when = self._when(event)
        if phase == "begin":
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
            self._point(event, when)
        self._last, process.last_when = event, when
        self._last_line = line

    def _number(self, seq: int, line: int) -> None:
        """Track sequence numbers; two threads may write their lines in either order."""
        if seq < 0:
            return
        self._numbered += 1
        if seq > self._highest + 1:
            self._last_hole = line
        self._highest = max(self._highest, seq)

    def _point(self, event: schema.Event, when: float) -> None:
        process = self.process
        if isinstance(event, (schema.ProcessStart, schema.LauncherStart)):
            if process.start is None:
                process.start, process.start_when = event, when
                self._identity(event)
        elif isinstance(event, (schema.ProcessEnd, schema.LauncherEnd)):
            process.end = event
        elif isinstance(event, schema.Full):
            process.full = True

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
        process.holes = max(0, self._highest + 1 - self._numbered)
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
