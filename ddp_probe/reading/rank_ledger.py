"""What the diagnosis needs of one rank's ledger, a few kilobytes of it: what was called at each number of each group, the last calls, the phases.

Equal calls of all ranks are one object: ten thousand ledgers must fit in memory. `whole` reads a ledger again with all that it holds.
"""

import os
from array import array
from collections import deque
from functools import lru_cache
from typing import Any, Deque, Dict, Iterable, List, NamedTuple, Optional, Tuple

from ddp_probe.reading import fold_file, ledger_file, steps, whole_ledger
from ddp_probe.reading.steps import StepTimes
from ddp_probe.reading.whole_ledger import CallSum, Group, Ledger, LedgerSite, Phase, Record
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.alignment import AlignedCall
from ddp_probe.shared.ledger_codec import RECORD, Values
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

_FIELDS = ("left", "seq", "elements", "outer", "op", "device", "flags", "site")
_LAST = 64  # Among this many last records is the latest that the job itself made.
_SUMS = 32  # At most this many sums are kept: those in which most time was spent.
_OPEN = 32  # At most this many open calls are kept, and calls that raised: the latest.
_MANY = 1 << 20  # At most this many different calls are distinguished.
_LEFT, _SEQ, _ELEMENTS, _OUTER, _OP, _DEVICE, _FLAGS, _SITE = map(RECORD.position, _FIELDS)


class LedgerCall(NamedTuple):
    """What was called, without when and by whom; `root` is -1 if the operation has none."""

    op: str
    elements: int
    tensors: int
    dtype: str
    root: int
    site: Optional[LedgerSite]
    way: Tuple[LedgerSite, ...] = ()


_OF_GROUPS = frozenset(code.name for code in schema.OPERATIONS if code.code < schema.ABOUT_GROUPS)
_UNKNOWN = LedgerCall("", 0, 0, "", -1, None)
_CALLS: List[LedgerCall] = [_UNKNOWN]  # A call's number is its place here; 0 if it is not known.
_NUMBERS: Dict[LedgerCall, int] = {_UNKNOWN: 0}
_GROUPS: Dict[str, Group] = {}


class GroupCalls:
    """The collectives of one rank in one group."""

    __slots__ = ("first", "group", "last", "numbers")

    def __init__(self, group: Group, first: int) -> None:
        self.group = group
        self.first = first  # The earliest number that the ring still holds.
        self.numbers = array("I")  # The calls from there on.
        self.last: Optional[Record] = None

    @property
    def count(self) -> int:
        """Return the number of the last call that was begun."""
        return self.first + len(self.numbers) - 1

    def call(self, seq: int) -> Optional[LedgerCall]:
        """Return what was called at a number, if the ring still holds it."""
        if not 0 <= seq - self.first < len(self.numbers):
            return None
        return _CALLS[self.numbers[seq - self.first]] if self.numbers[seq - self.first] else None


class RankLedger(NamedTuple):
    """The ledger of one rank. Times are in seconds since 1970 on the clock of its host; `problem` says why there is less than there should be."""

    path: str
    problem: str = ""
    pid: int = 0
    rank: int = -1
    groups: Dict[str, GroupCalls] = {}
    pairs: Dict[Tuple[str, int, bool], int] = {}  # Group, peer and whether it sends, to the number of the last call.
    last: Optional[Record] = None  # The latest call that the job itself made.
    open: Tuple[Record, ...] = ()
    phases: Tuple[Phase, ...] = ()
    torn: int = 0
    closed: bool = False
    moved: float = 0.0
    base: float = 0.0
    dropped: Dict[Tuple[str, Optional[LedgerSite]], int] = {}  # How often asynchronous work was thrown away, by operation and line.
    steps: StepTimes = StepTimes()  # The latest.
    sums: Tuple[CallSum, ...] = ()  # Sums of collectives.
    raised: Tuple[Record, ...] = ()
    handler: Optional[Record] = None  # The first of the last calls that was made in a signal's handler.
    has_items: bool = False  # Whether a collective was made in a loop over names; the whole ledger has the items.

    @property
    def complete(self) -> bool:
        """Tell whether what is not in it did not happen."""
        return not (self.problem or self.torn or self.closed)

    def when(self, mono_ns: int) -> float:
        """Return a time of the ledger as seconds since 1970."""
        return self.base + mono_ns * 1e-9


def find(log: str) -> str:
    """Return the ledger of the process that wrote this log; the newest if it began several, an empty string if there is none."""
    base, path = log[: -len(".jsonl")], ""
    if not log.endswith(".jsonl"):
        return ""
    later, number = _beside(base), 0
    while later:
        path, number = later, number + 1
        after = "%s.%d" % (base, number)
        later = _beside(after) if not os.path.exists(after + ".jsonl") else ""
    return path


def _beside(base: str) -> str:
    """Return the ledger of this name, or the same as text; an empty string if there is neither."""
    return next((base + suffix for suffix in schema.SUFFIXES if os.path.exists(base + suffix)), "")


def whole(path: str, data: Optional[bytes] = None) -> Ledger:
    """Return all that a ledger holds."""
    return whole_ledger.parse(data, path) if data is not None else whole_ledger.read(fold_file.real_place(path))


def as_of(path: str, data: Optional[bytes], until: float) -> Optional[bytes]:
    """Return the bytes of a ledger as they were at this time, on its host's clock; None if it cannot be read."""
    try:
        if data is None:
            reading = ledger_file.read(fold_file.real_place(path))
            data = reading.data + bytes(reading.left_out)
        return ledger_file.as_of(bytes(ledger_file.of_lines(data)) if ledger_file.is_text(data) else data, until)
    except (OSError, ValueError):
        return None


def made(records: Iterable[Record]) -> List[AlignedCall]:
    """Return the calls of the job's main thread as they are compared with those of other ranks: not those of a signal's handler."""
    return [_made(record) for record in records if not (record.is_inner or record.in_side_thread or record.signal)]


def _made(record: Record) -> AlignedCall:
    site, group = record.site or LedgerSite(), record.group if record.op in _OF_GROUPS else None
    members = _members(group.ranks) if group is not None else ()
    peer = record.peer if record.op in schema.PAIRED else -1
    return AlignedCall(record.op, site.file, site.line, group.id if group is not None else "", members, record.seq, peer)


@lru_cache(maxsize=1 << 10)
def _members(text: str) -> Tuple[int, ...]:
    try:
        return tuple(schema.ranks_of(text))
    except ValueError:  # It was cut.
        return ()


def read(path: str, data: Optional[bytes] = None) -> RankLedger:
    """Return what is kept of a ledger. Two thousand records take two milliseconds: of most of them nothing but the number of the call is made."""
    try:
        reading = ledger_file.read(path) if data is None else ledger_file.Reading(data)
    except OSError as exc:
        reason = quoted(exc.strerror or type(exc).__name__)
        return RankLedger(path, say("The file cannot be read: {reason}.", reason=reason))
    full, texts, rows = whole_ledger.parse_rows(reading.data, path, reading.before, reading.left_out, steps.KEPT)
    head = full.header
    if head is None or head.version not in schema.READS:
        return RankLedger(path, full.problem or "The file is empty.")
    kept = _Kept(full.groups, texts)
    kept.add(rows)
    outer = next((row for row in reversed(rows[-_LAST:]) if not row[_OUTER]), None)
    handler = next((row for row in rows[-_LAST:] if row[_FLAGS] >> schema.SIGNAL_BITS), None)
    base = (head.wall_ns - head.mono_ns) * 1e-9
    collective_sums = [call_sum for call_sum in full.sums if call_sum.op in schema.COLLECTIVES]
    return RankLedger(
        path,
        problem=full.problem,
        pid=head.pid,
        rank=head.rank,
        groups=kept.finished(),
        pairs=kept.pairs,
        last=whole_ledger.record(outer, texts) if outer is not None else None,
        open=tuple(whole_ledger.record(row, texts) for row in kept.open),
        phases=tuple(full.phases),
        torn=full.torn,
        closed=bool(head.closed_ns),
        moved=base + head.moved_ns * 1e-9,
        base=base,
        dropped=kept.dropped(),
        steps=full.steps if full.steps.numbers else steps.of_calls(rows, texts),
        sums=tuple(sorted(collective_sums, key=lambda call_sum: -call_sum.inside_ns)[:_SUMS]),
        raised=tuple(whole_ledger.record(row, texts) for row in kept.raised),
        handler=whole_ledger.record(handler, texts) if handler is not None else None,
        has_items=kept.has_items,
    )


_Known = Tuple[GroupCalls, "array[int]", int]  # For equal calls of a rank: the calls of their group, the numbers of these, and the call's number.


class _Kept:
    """What is kept of the records, as they are added in order. A row is a record as the file has it, with numbers for texts."""

    def __init__(self, groups: List[Group], texts: Dict[int, Any]) -> None:
        self.texts = texts
        self.groups = {group.id: GroupCalls(_GROUPS.setdefault(group.id, group), 1) for group in groups}
        self.pairs: Dict[Tuple[str, int, bool], int] = {}
        self.open: Deque[Values] = deque(maxlen=_OPEN)
        self.raised: Deque[Values] = deque(maxlen=_OPEN)
        self._dropped: Dict[Tuple[int, int], Tuple[int, Values]] = {}
        self._met: Dict[Values, _Known] = {}
        self._rows: Dict[GroupCalls, Values] = {}
        self.has_items = False

    def add(self, rows: List[Values]) -> None:
        """Take the records in order; this is the loop that a report over ten thousand ranks is in for most of its time."""
        met, last = self._met.get, self._rows
        for row in rows:
            if row[_OUTER]:
                continue
            state = row[_LEFT] & 3
            if not state:
                self.open.append(row)
            elif state == schema.DROPPED:
                self._drop(row)
            elif state == schema.RAISED:
                self.raised.append(row)
            met_call = met(row[_ELEMENTS:_DEVICE])
            if met_call is None:
                met_call = self._meet(row)
                if met_call is None:
                    continue
            calls, numbers, number = met_call
            if not numbers:
                calls.first = row[_SEQ]
            missing = row[_SEQ] - calls.first - len(numbers)
            if missing and not self._skip(numbers, missing):
                continue
            numbers.append(number)
            last[calls] = row

    def _drop(self, row: Values) -> None:
        count, first = self._dropped.get((row[_OP], row[_SITE]), (0, row))
        self._dropped[(row[_OP], row[_SITE])] = count + 1, first

    def dropped(self) -> Dict[Tuple[str, Optional[LedgerSite]], int]:
        """Return how often a call's work was thrown away, by operation and call site."""
        counted = [(count, whole_ledger.record(row, self.texts)) for count, row in self._dropped.values()]
        return {(record.op, record.site): count for count, record in counted}

    def _skip(self, numbers: "array[int]", missing: int) -> bool:
        if 0 < missing <= schema.RECORDS:
            numbers.extend([0] * missing)
            return True
        return False

    def _meet(self, row: Values) -> Optional[_Known]:
        """Return what equal calls of this rank have in common; None for what is not a collective."""
        if row[_OP] >= schema.POINT_TO_POINT:
            if row[_OP] < schema.ABOUT_GROUPS:
                self._pair(row)
            return None
        record = whole_ledger.record(row, self.texts)
        if record.group is None:
            return None
        self.has_items = self.has_items or record.item > 0
        calls = self.groups.setdefault(record.group.id, GroupCalls(record.group, record.seq))
        call = LedgerCall(record.op, record.elements, record.tensors, record.dtype, record.peer, record.site, record.way)
        met = self._met[row[_ELEMENTS:_DEVICE]] = calls, calls.numbers, number_of(call)
        return met

    def _pair(self, row: Values) -> None:
        record = whole_ledger.record(row, self.texts)
        if record.group is not None:
            key = (record.group.id, record.peer, record.op in schema.SENDS)
            self.pairs[key] = max(record.seq, self.pairs.get(key, 0))

    def finished(self) -> Dict[str, GroupCalls]:
        """Return the groups, each with the record of its last call."""
        for calls, row in self._rows.items():
            calls.last = whole_ledger.record(row, self.texts)
        return self.groups


def call_of(number: int) -> Optional[LedgerCall]:
    """Return the call that GroupCalls have this number for; None if it is not known."""
    return _CALLS[number] if number else None


def number_of(call: LedgerCall) -> int:
    """Return the number that GroupCalls have for a call."""
    number = _NUMBERS.get(call)
    if number is None:
        if len(_CALLS) >= _MANY:
            return 0
        number = _NUMBERS[call] = len(_CALLS)
        _CALLS.append(call)
    return number
