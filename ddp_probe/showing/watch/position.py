"""The position of one rank, from the end of its ledger: its process, its phase, and the call that it is in."""

import os
import time
from typing import Any, Dict, NamedTuple, Optional, Tuple

from ddp_probe.reading import alive, log_lines, rank_ledger, rank_stacks, whole_ledger
from ddp_probe.reading.rank_ledger import RankLedger
from ddp_probe.reading.steps import StepTimes
from ddp_probe.reading.whole_ledger import Group, Header, Ledger, LedgerSite, Phase, Record
from ddp_probe.shared import ledger_codec as codec
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.ledger_codec import LedgerBytes
from ddp_probe.shared.regular_files import open_unbuffered
from ddp_probe.showing.watch import watched_files
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

KEPT = 32
"""How many of the last records are read; a power of two."""


class _Known(NamedTuple):
    """A ledger as it was read last, and whether the file was at rest then."""

    head: bytes
    ledger: whole_ledger.Ledger
    at_rest: bool
    end: bytes  # The end of the ring, in the form of a smaller ledger; empty if the whole file was read.


class Glimpses:
    """Reads ledgers again and again; a file that has not moved between two looks is not parsed a third time."""

    def __init__(self) -> None:
        self._known: Dict[str, _Known] = {}
        self._kept: Dict[str, Tuple[bytes, RankLedger]] = {}

    def of(self, path: str) -> whole_ledger.Ledger:
        """Return the header, groups, phases, sums, steps and last records of a ledger."""
        glimpse = self._known.get(path)
        try:
            with open_unbuffered(path) as file:
                head = os.pread(file.fileno(), schema.HEADER_BYTES, 0)
                same = glimpse is not None and glimpse.head == head
                if glimpse is not None and same and glimpse.at_rest:
                    return glimpse.ledger
                end, before = _last_bytes(file.fileno(), head)
                ledger = whole_ledger.parse(end, path, before) if end else whole_ledger.read(path, KEPT)
        except OSError as exc:
            reason = quoted(exc.strerror or type(exc).__name__)
            return whole_ledger.Ledger(path, problem=say("The file cannot be read: {reason}.", reason=reason))
        self._known[path] = _Known(head, ledger, same, end)
        return ledger

    def kept(self, path: str, whole: bool) -> RankLedger:
        """Return what is kept of a ledger of which there was a glimpse: of all its records, or of the last ones."""
        glimpse = self._known.get(path)
        head, end = (glimpse.head, glimpse.end) if glimpse is not None else (b"", b"")
        if self._kept.get(path, (b"",))[0] != head or not head:
            self._kept[path] = head, rank_ledger.read(path, None if whole or not end else end)
        return self._kept[path][1]


def _last_bytes(file: int, head: bytes) -> Tuple[bytes, Optional[bytes]]:
    """Return the end of the file, and an earlier reading if it has changed since; nothing if its header is not as expected."""
    areas = _Areas.of(file, head)
    if areas is None:
        return b"", None
    before, data = areas.image(), areas.image()
    return data, None if before == data else before


class _Areas:
    """The places of a file's areas, and the number of its newest record."""

    def __init__(self, file: int, data: bytes, opened: LedgerBytes) -> None:
        self._file = file
        self._data = data
        self._head, self._header, self._record = opened.head, opened.header, opened.codec(schema.RECORD_AREA)
        self._texts = -(-opened.head["text_used"] // 8) * 8
        self._at = opened.at
        self._size, self._count = opened.head["record_size"], opened.head["records"]
        self._newest = self._last_record()

    @classmethod
    def of(cls, file: int, data: bytes) -> "Optional[_Areas]":
        """Return the areas of a file with this header, or None if it is not of this version, or an area is missing."""
        opened = codec.opened(data) if len(data) >= schema.HEADER_BYTES else None
        if opened is None or not _usual(opened) or opened.at.end > os.fstat(file).st_size:
            return None
        return cls(file, data, opened)

    def image(self) -> bytes:
        """Return the bytes of a ledger that holds the last records alone."""
        texts = os.pread(self._file, self._texts, self._head["header_size"])
        return b"".join((self._small_header(), texts, self._rows(), self._last_records()))

    def _small_header(self) -> bytes:
        data = bytearray(self._data)
        self._header.write(data, 0, {**self._head, "text_size": self._texts, "passes": 0, "records": KEPT})
        return bytes(data)

    def _rows(self) -> bytes:
        """Return the phases, the sums and the steps."""
        return os.pread(self._file, self._at.passes - self._at.phases, self._at.phases)

    def _last_records(self) -> bytes:
        """Return the last records, each at the place that it has in the smaller ring."""
        first = max(0, self._newest - KEPT + 1)
        begin = first % self._count
        whole = min(KEPT, self._count - begin)
        data = self._records(begin, whole) + self._records(0, KEPT - whole)
        turn = (KEPT - first % KEPT) % KEPT * self._size
        return data[turn:] + data[:turn]

    def _records(self, begin: int, count: int) -> bytes:
        return os.pread(self._file, count * self._size, self._at.records + begin * self._size) if count else b""

    def _last_record(self) -> int:
        """Return the number of the newest record: places of the present round hold consecutive numbers, the rest older ones."""
        start = self._number(0)
        low, high = 0, self._count - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._number(middle) == start + middle else (low, middle - 1)
        return start + low

    def _number(self, place: int) -> int:
        word = os.pread(self._file, 8, self._at.records + place * self._size)
        return self._record.read_field(word, 0, "index") if len(word) == 8 else 0  # Somebody may cut the file short meanwhile.


def _usual(opened: LedgerBytes) -> bool:
    """Return whether the areas are laid out as a process of this version or an older one writes them, so that a part of the file can be read."""
    head = opened.head
    if head["version"] not in schema.READS or head["header_size"] != schema.HEADER_BYTES or head["records"] < KEPT:
        return False
    for area in schema.AREAS:
        is_left_out = area.since > 1 and not head.get(area.name + "_size")
        if area.rows and not is_left_out and head[area.name + "_size"] != opened.codec(area).size:
            return False
    few_rows = max(head[name] for name in ("phases", "sums", "steps", "passes")) <= 1 << 10
    few_bytes = head["text_used"] <= head["text_size"] <= 1 << 24
    return few_rows and few_bytes and not head["records"] & (head["records"] - 1)  # A power of two.


RUNNING, STOPPED, GONE, ENDED, FAILED, OFF, ELSEWHERE = "running", "stopped", "gone", "ended", "failed", "probe off", "on another host"
NO_LEDGER = "no ledger"
OVER = (GONE, ENDED, FAILED)
"""States of a process that does not run any more."""

_BACKWARD = "backward"
_QUIET = int(3e9)  # Nanoseconds without a move, after which it is asked whether an exception has ended the program.


class Position(NamedTuple):
    """The position of one rank."""

    rank: int
    host: str
    pid: int
    state: str
    world_size: int
    phase: str  # The innermost open one.
    step: int  # How often backward was entered.
    op: str  # The call that the rank is in, or was last in.
    number: int
    waits: bool  # It is in that call.
    group: Optional[Group]
    peer: int
    site: Optional[LedgerSite]
    since_ns: int  # When it entered its phase or call, on its monotonic clock.
    seconds: float  # For how long it has been there.
    began_ns: int  # When the file was made, on the same clock.
    moved_ns: int
    steps: StepTimes = StepTimes()  # The latest ones.

    @property
    def now_ns(self) -> int:
        """Return the time of the look on its monotonic clock."""
        return self.since_ns + int(self.seconds * 1e9)


def of(ledger: Ledger, ended_at: float) -> Optional[Position]:
    """Return the position; None if the file is not a ledger. `ended_at` is when the run last wrote, for a process that is gone."""
    head = ledger.header
    if head is None:
        return None
    state = _state(head, ledger.path)
    call = _call(ledger)
    opened = [phase for phase in ledger.phases if phase.is_open and not phase.in_side_thread]
    inner = max(opened, key=lambda phase: phase.entered_ns, default=None)
    waits = call is not None and call.blocks
    since, site = _since(call, inner, head)
    return Position(
        rank=head.rank if head.rank >= 0 else rank_stacks.rank_of(ledger.path),
        host=head.host,
        pid=head.pid,
        state=state,
        world_size=head.world_size,
        phase=inner.name if inner is not None else "",
        step=next((phase.times for phase in ledger.phases if phase.name == _BACKWARD), 0),
        op=call.op if call is not None else "",
        number=call.seq if call is not None else 0,
        waits=waits,
        group=call.group if call is not None else None,
        peer=call.peer if call is not None and call.op not in schema.COLLECTIVES else -1,
        site=site,
        since_ns=since,
        seconds=max(0.0, _now(head, state, ended_at) - since) / 1e9 if since else 0.0,
        began_ns=head.mono_ns,
        moved_ns=head.moved_ns,
        steps=ledger.steps,
    )


def _since(call: Optional[Record], inner: Optional[Phase], head: Header) -> Tuple[int, Optional[LedgerSite]]:
    """Return since when the rank is in what it is in, and the line of the job that it is at."""
    if call is not None and call.blocks:
        return (call.waited_ns if call.is_issued else call.entered_ns), call.site
    if inner is not None:
        return inner.entered_ns, inner.site
    return head.moved_ns, call.site if call is not None else None


def _call(ledger: Ledger) -> Optional[Record]:
    """Return the call that the main thread is in, else that of another thread, else the last one."""
    records = [record for record in ledger.records if not record.is_inner]
    blocking = [record for record in records if record.blocks]
    main = [record for record in blocking if not record.in_side_thread]
    return next((calls[-1] for calls in (main, blocking, records) if calls), None)


def _now(head: Header, state: str, ended_at: float) -> float:
    """Return the present time on the clock of that host; for a process that is gone, the time when the run last wrote."""
    if state in OVER:
        return max(float(head.moved_ns), head.mono_ns + ended_at * 1e9 - head.wall_ns)
    if state == ELSEWHERE:
        return float(head.mono_ns + time.time_ns() - head.wall_ns)
    return float(time.monotonic_ns())


def _state(head: Header, path: str) -> str:
    log = watched_files.log_of(path)
    state = _kernel_state(log, head.pid, head.host, head.born, head.boot)
    if state == RUNNING and time.monotonic_ns() - head.moved_ns > _QUIET and _last_words(log).get("uncaught"):
        return FAILED  # It hangs while it exits: its exception is written, and others wait for it.
    return OFF if state == RUNNING and head.closed_ns else state


def state_by_log(log: str, pid: int, host: str, born: int, boot: str) -> str:
    """Return the state of a process that has a log and no ledger."""
    state = _kernel_state(log, pid, host, born, boot) if pid else GONE
    return NO_LEDGER if state in (RUNNING, ELSEWHERE) else state


def _kernel_state(log: str, pid: int, host: str, born: int, boot: str) -> str:
    kernel = alive.kernel_state(pid, host, born, boot)
    if kernel is None:
        last = _last_words(log)
        return _end(last) if last else ELSEWHERE
    if not kernel:
        return _end(_last_words(log))
    return STOPPED if kernel in "Tt" else RUNNING


def _last_words(log: str) -> Dict[str, Any]:
    """Return the last words of a process; its watcher may have written on after them. Empty if there are none."""
    return next((event for event in reversed(log_lines.tail(log)) if event.get("event") == "process.end"), {})


def _end(last: Dict[str, Any]) -> str:
    """Return how a process ended, by its last words."""
    if not last:
        return GONE
    return FAILED if last.get("uncaught") or last.get("exit_code") else ENDED
