"""Folds the lines of one file into the summary of a process."""

from datetime import datetime, timezone
from typing import Dict, List, Optional, Tuple

from ddp_probe import schema
from ddp_probe.read._decode import decode
from ddp_probe.read.logged_call import LoggedCall, LogLine
from ddp_probe.read.model import Inventory, LoggedProcess

_PHASES = {name: name for name in ("begin", "end", "error", "point")}
_NOTHING: List[schema.Site] = []  # Shared by all; never modified.
_SITES: Dict[Tuple[str, int, str], schema.Site] = {}
_MANY = 10000  # At most this many different call sites are shared; beyond that each event keeps its own.
_WORDS, _FRAMES = 1 << 14, 200  # Characters of a message and frames of a traceback that are kept; a probe does not write more.
_COMPARED = (schema.HangSuspected, schema.Stacks)  # By the clock that the ledger has too.
_OPEN = 1000  # At most this many calls without an end; a file with more was not written by the probe.


class Fold:
    """Takes the lines of one file in order; can continue when the file has grown."""

    def __init__(self, file: str, inventory: Inventory) -> None:
        self.process = LoggedProcess(file)
        self._inventory = inventory
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
            process.keep(call)
            if event.span is not None and len(process.open) < _OPEN:
                process.open[event.span] = call
        elif phase in ("end", "error"):
            begun = process.open.pop(event.span, None) if event.span is not None else None
            call = begun or LoggedCall(event, process.file, line, when)
            if begun is None:
                process.keep(call)
            call.end, call.line_after, call.until = event, line, when
            if phase == "error":
                process.keep_failed(call)
        else:
            call = LoggedCall(event, process.file, line, when)
            call.end, call.line_after, call.until = event, line, when
            process.keep(call)
            self._point(event, when)
        process.last, process.last_when = event, when
        self._last_line = line

    def _number(self, seq: int, line: int) -> None:
        """Track sequence numbers; two threads may write their lines in either order."""
        if seq < 0:
            return
        self._numbered += 1
        if seq > self._highest + 1:
            self._last_hole = line
        self._highest = max(self._highest, seq)

    def _lighten(self, event: schema.Event) -> None:
        """Share equal values and drop those no longer needed: each decoded line has its own copies."""
        process = self.process
        event.phase = _PHASES.get(event.phase, event.phase)
        event.ts = ""
        if not isinstance(event, _COMPARED):
            event.mono_ns = 0
        if event.host == process.host:
            event.host = process.host
        if event.run == process.run:
            event.run = process.run
        if event.pid == process.pid:
            event.pid = process.pid
        if event.rank == process.rank:
            event.rank = process.rank
        if event.world_size == process.world_size:
            event.world_size = process.world_size
        if not event.through:
            event.through = _NOTHING
        if event.site is not None:
            event.site = _site(event.site)

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
        last = self.process.last
        self.process.last_at = LogLine(self.process.file, self._last_line)
        self.process.holes = max(0, self._highest + 1 - self._numbered)
        if self.process.holes:
            self._close_over_holes()
        if self.process.start is None and last is not None:
            self._identity(last)
        if self.process.world_size is None and last is not None:  # A child of mp.spawn learns it from init_process_group.
            self.process.world_size = last.world_size
        for call in self.process.every():
            self._lighten(call.begin)
            if call.end is not None and call.end is not call.begin:
                self._lighten(call.end)
        return self.process

    def _close_over_holes(self) -> None:
        """Treat a call that began before a gap as returned: its end may be in the missing lines, and the process continued."""
        for span, call in list(self.process.open.items()):
            if call.line < self._last_hole:
                call.end = type(call.begin)()
                del self.process.open[span]


def _shorten(event: schema.Event) -> None:
    """Cut an exception's message to the length that a probe writes: rules search it."""
    if event.failure is not None:
        event.failure.message = _short(event.failure.message)
        del event.failure.frames[_FRAMES // 2 : max(len(event.failure.frames) - _FRAMES // 2, _FRAMES // 2)]
    if isinstance(event, schema.LauncherChild):
        event.message = _short(event.message)


def _short(message: str) -> str:
    return message if len(message) <= _WORDS else "%s … %s" % (message[: _WORDS * 3 // 4], message[-_WORDS // 4 :])


def seconds(stamp: str) -> Optional[float]:
    """Return an RFC 3339 time as seconds since 1970."""
    for form in ("%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%SZ"):
        try:
            return datetime.strptime(stamp, form).replace(tzinfo=timezone.utc).timestamp()
        except ValueError:
            continue
    return None


def _site(site: schema.Site) -> schema.Site:
    """Return one shared object per line of the job; all ranks make the same calls."""
    key = (site.file, site.line, site.function)
    known = _SITES.get(key)
    if known is None:
        if len(_SITES) < _MANY:
            _SITES[key] = site
        return site
    return known
