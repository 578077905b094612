"""What is kept of a rank's ledger, as plain values: equal groups, sites, calls and sequences of calls of all ranks are written once."""

import sys
from array import array
from typing import Any, Dict, List, Optional, Sequence, Tuple

import msgspec

from ddp_probe.reading import rank_ledger
from ddp_probe.reading.rank_ledger import GroupCalls, LedgerCall, RankLedger
from ddp_probe.reading.steps import PARTS, StepTimes, counted
from ddp_probe.reading.whole_ledger import CallSum, Group, LedgerSite, Phase, Record

_Row = Tuple[Any, ...]  # A record or a phase with numbers for its group and its site; 0 for none.
_CALL, _CALL_WAY = LedgerCall._fields.index("site"), LedgerCall._fields.index("way")
_GROUP, _SITE, _WAY = (Record._fields.index(name) for name in ("group", "site", "way"))
_PHASE_SITE = Phase._fields.index("site")
_SUM_GROUP, _SUM_SITE = CallSum._fields.index("group"), CallSum._fields.index("site")


class FoldedLedger(msgspec.Struct, array_like=True):
    """A RankLedger with numbers for what ranks share."""

    problem: str
    pid: int
    rank: int
    groups: List[Tuple[int, int, int, Optional[_Row]]]  # Group, first number, sequence of calls, last record.
    pairs: List[Tuple[str, int, bool, int]]
    last: Optional[_Row]
    open: List[_Row]
    phases: List[_Row]
    torn: int
    closed: bool
    moved: float
    base: float
    dropped: List[Tuple[str, int, int]]
    steps: Tuple[List[int], int, bytes] = ([], 0, b"")  # Their numbers, the first alone if they follow one another; when the last ended; columns.
    sums: List[_Row] = []
    raised: List[_Row] = []
    handler: Optional[_Row] = None
    has_items: bool = False


class LedgerTables(msgspec.Struct):
    """What the folded ledgers share; the numbers begin with 1."""

    groups: List[Group] = []
    sites: List[LedgerSite] = []
    calls: List[_Row] = []
    sequences: List[bytes] = []


class LedgerFolder:
    """Folds ledgers into one set of tables."""

    def __init__(self) -> None:
        self.tables = LedgerTables()
        self._numbers: Dict[Any, int] = {}

    def fold(self, ledger: RankLedger) -> FoldedLedger:
        """Return a ledger as plain values."""
        groups = [
            (self._group(calls.group), calls.first, self._sequence(calls.numbers), self._record(calls.last)) for calls in ledger.groups.values()
        ]
        return FoldedLedger(
            ledger.problem,
            ledger.pid,
            ledger.rank,
            groups,
            [(*key, number) for key, number in ledger.pairs.items()],
            self._record(ledger.last),
            self._records(ledger.open),
            [_replaced(phase, {_PHASE_SITE: self._site(phase.site)}) for phase in ledger.phases],
            ledger.torn,
            ledger.closed,
            ledger.moved,
            ledger.base,
            [(op, self._site(site), count) for (op, site), count in ledger.dropped.items()],
            _folded_steps(ledger.steps),
            [_replaced(call_sum, {_SUM_GROUP: self._group(call_sum.group), _SUM_SITE: self._site(call_sum.site)}) for call_sum in ledger.sums],
            self._records(ledger.raised),
            self._record(ledger.handler),
            ledger.has_items,
        )

    def _records(self, records: Sequence[Record]) -> List[_Row]:
        return [row for record in records for row in [self._record(record)] if row is not None]

    def _record(self, record: Optional[Record]) -> Optional[_Row]:
        if record is None:
            return None
        return _replaced(record, {_GROUP: self._group(record.group), _SITE: self._site(record.site), _WAY: self._way(record.way)})

    def _group(self, group: Optional[Group]) -> int:
        return 0 if group is None else self._number(("group", group.id, group.size, group.ranks, group.nth, group.name), self.tables.groups, group)

    def _site(self, site: Optional[LedgerSite]) -> int:
        return 0 if site is None else self._number(site, self.tables.sites, site)

    def _way(self, way: Sequence[LedgerSite]) -> List[int]:
        return [self._site(site) for site in way]

    def _sequence(self, numbers: "array[int]") -> int:
        key = numbers.tobytes()
        if key in self._numbers:
            return self._numbers[key]
        calls = array("I", [self._call(rank_ledger.call_of(number)) for number in numbers])
        return self._number(key, self.tables.sequences, little_endian(calls).tobytes())

    def _call(self, call: Optional[LedgerCall]) -> int:
        if call is None:
            return 0
        known = self._numbers.get(call)
        if known is not None:
            return known
        row = _replaced(call, {_CALL: self._site(call.site), _CALL_WAY: self._way(call.way)})
        return self._number(call, self.tables.calls, row)

    def _number(self, key: Any, table: List[Any], value: Any) -> int:
        known = self._numbers.get(key)
        if known is None:
            table.append(value)
            known = self._numbers[key] = len(table)
        return known


class LedgerUnfolder:
    """Makes ledgers of folded ones; `sequences` holds those of other folds, so that equal ones are one object."""

    def __init__(self, tables: LedgerTables, sequences: "Dict[bytes, array[int]]") -> None:
        self._groups: List[Optional[Group]] = [None, *tables.groups]
        self._sites: List[Optional[LedgerSite]] = [None, *tables.sites]
        calls = [LedgerCall(*_replaced(row, {_CALL: self._sites[row[_CALL]], _CALL_WAY: self._way(row, _CALL_WAY)})) for row in tables.calls]
        numbers = [0, *(rank_ledger.number_of(call) for call in calls)]
        self._sequences: List[array[int]] = [array("I"), *(_shared(data, numbers, sequences) for data in tables.sequences)]

    def unfold(self, path: str, folded_ledger: FoldedLedger) -> RankLedger:
        """Return what is kept of the ledger."""
        groups: Dict[str, GroupCalls] = {}
        for number, first, sequence, last in folded_ledger.groups:
            group = self._groups[number] or Group()
            calls = groups[group.id] = GroupCalls(group, first)
            calls.numbers, calls.last = self._sequences[sequence], self._record(last)
        return RankLedger(
            path,
            folded_ledger.problem,
            folded_ledger.pid,
            folded_ledger.rank,
            groups,
            {(group, peer, sends): number for group, peer, sends, number in folded_ledger.pairs},
            self._record(folded_ledger.last),
            self._records(folded_ledger.open),
            tuple(Phase(*_replaced(row, {_PHASE_SITE: self._sites[row[_PHASE_SITE]]})) for row in folded_ledger.phases),
            folded_ledger.torn,
            folded_ledger.closed,
            folded_ledger.moved,
            folded_ledger.base,
            {(op, self._sites[site]): count for op, site, count in folded_ledger.dropped},
            _unfolded_steps(*folded_ledger.steps),
            tuple(self._sum(row) for row in folded_ledger.sums),
            self._records(folded_ledger.raised),
            self._record(folded_ledger.handler),
            folded_ledger.has_items,
        )

    def _records(self, rows: Sequence[_Row]) -> Tuple[Record, ...]:
        return tuple(record for row in rows for record in [self._record(row)] if record is not None)

    def _sum(self, row: _Row) -> CallSum:
        return CallSum(*_replaced(row, {_SUM_GROUP: self._groups[row[_SUM_GROUP]], _SUM_SITE: self._sites[row[_SUM_SITE]]}))

    def _record(self, row: Optional[_Row]) -> Optional[Record]:
        if row is None:
            return None
        return Record(*_replaced(row, {_GROUP: self._groups[row[_GROUP]], _SITE: self._sites[row[_SITE]], _WAY: self._way(row, _WAY)}))

    def _way(self, row: _Row, place: int) -> Tuple[LedgerSite, ...]:
        """Return a way; a fold of an older version has none."""
        numbers = row[place] if len(row) > place else ()
        return tuple(site for number in numbers for site in [self._sites[number]] if site is not None)


def _folded_steps(steps: StepTimes) -> Tuple[List[int], int, bytes]:
    numbers = list(steps.numbers)
    follows = bool(numbers) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    columns = [steps.took, *(steps.parts[name] for name in PARTS)] if numbers else []
    return numbers[: 1 if follows else None], steps.ended_ns, b"".join(little_endian(array("I", times)).tobytes() for times in columns)


def _unfolded_steps(numbers: List[int], ended_ns: int, data: bytes) -> StepTimes:
    if not numbers:
        return StepTimes()
    words = array("I")
    words.frombytes(data)
    count = len(words) // (len(PARTS) + 1)
    if not count or len(words) % count or len(numbers) not in (1, count):
        raise ValueError("the steps of a ledger do not fit together")
    took, *parts = [little_endian(words)[at : at + count] for at in range(0, len(words), count)]
    return StepTimes(counted(numbers) if len(numbers) == count else range(numbers[0], numbers[0] + count), took, dict(zip(PARTS, parts)), ended_ns)


def _replaced(row: Tuple[Any, ...], fields: Dict[int, Any]) -> _Row:
    """Return a row with other values in some places."""
    return tuple(fields.get(place, value) for place, value in enumerate(row))


def _shared(data: bytes, numbers: List[int], known: "Dict[bytes, array[int]]") -> "array[int]":
    """Return a sequence in the numbers of this process."""
    theirs = array("I")
    theirs.frombytes(data)
    own = array("I", [numbers[number] for number in little_endian(theirs)])
    return known.setdefault(own.tobytes(), own)


def little_endian(numbers: "array[Any]") -> "array[Any]":
    """Return numbers in the byte order of a fold, or back."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers
