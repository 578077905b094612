"""What is kept of a rank's ledger, as plain values: equal groups, sites, calls and sequences of calls of all ranks are written once."""

import sys
from array import array
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type, TypeVar

import msgspec

from ddp_probe.reading import rank_ledger
from ddp_probe.reading.rank_ledger import GroupCalls, LedgerCall, RankLedger
from ddp_probe.reading.steps import PARTS, StepTimes, counted
from ddp_probe.reading.whole_ledger import CallSum, Group, LedgerSite, Phase, Record

_Row = Tuple[Any, ...]  # A record, a phase, a sum or a call with numbers for its group, its site and its way; 0 for none.
_Shared = TypeVar("_Shared", Record, Phase, CallSum, LedgerCall)


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


_REFERENCES = ("group", "site", "way")
"""The fields of a row that have numbers in a fold."""
_FOLDED = ("groups", "pairs", "last", "open", "phases", "dropped", "steps", "sums", "raised", "handler")
_PLAIN = [name for name in FoldedLedger.__struct_fields__ if name not in _FOLDED]
"""The fields of a ledger that a fold has as they are."""


class LedgerFolder:
    """Folds ledgers into one set of tables."""

    def __init__(self) -> None:
        self.tables = LedgerTables()
        self._numbers: Dict[Any, int] = {}

    def fold(self, ledger: RankLedger) -> FoldedLedger:
        """Return a ledger as plain values."""
        plain = {name: getattr(ledger, name) for name in _PLAIN}
        return FoldedLedger(
            **plain,
            groups=[
                (self._group(calls.group), calls.first, self._sequence(calls.numbers), self._optional(calls.last)) for calls in ledger.groups.values()
            ],
            pairs=[(*key, number) for key, number in ledger.pairs.items()],
            last=self._optional(ledger.last),
            open=[self._row(record) for record in ledger.open],
            phases=[self._row(phase) for phase in ledger.phases],
            dropped=[(op, self._site(site), count) for (op, site), count in ledger.dropped.items()],
            steps=_folded_steps(ledger.steps),
            sums=[self._row(call_sum) for call_sum in ledger.sums],
            raised=[self._row(record) for record in ledger.raised],
            handler=self._optional(ledger.handler),
        )

    def _optional(self, record: Optional[Record]) -> Optional[_Row]:
        return self._row(record) if record is not None else None

    def _row(self, shared: _Shared) -> _Row:
        """Return the values of a row, with numbers for what ranks share."""
        fields = shared._asdict()
        for name in _REFERENCES:
            if name in fields:
                fields[name] = getattr(self, "_" + name)(fields[name])
        return tuple(fields.values())

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
        number = self._numbers.get(call)
        if number is not None:
            return number
        return self._number(call, self.tables.calls, self._row(call))

    def _number(self, key: Any, table: List[Any], value: Any) -> int:
        number = self._numbers.get(key)
        if number is None:
            table.append(value)
            number = self._numbers[key] = len(table)
        return number


class LedgerUnfolder:
    """Makes ledgers of folded ones; `sequences` holds those of other folds, so that equal ones are one object."""

    def __init__(self, tables: LedgerTables, sequences: "Dict[bytes, array[int]]") -> None:
        self._groups: List[Optional[Group]] = [None, *tables.groups]
        self._sites: List[Optional[LedgerSite]] = [None, *tables.sites]
        calls = [self._shared(LedgerCall, row) for row in tables.calls]
        numbers = [0, *(rank_ledger.number_of(call) for call in calls)]
        self._sequences: List[array[int]] = [array("I"), *(_sequence(data, numbers, sequences) for data in tables.sequences)]

    def unfold(self, path: str, folded_ledger: FoldedLedger) -> RankLedger:
        """Return what is kept of the ledger."""
        groups: Dict[str, GroupCalls] = {}
        for number, first, sequence, last in folded_ledger.groups:
            group = self._groups[number] or Group()
            calls = groups[group.id] = GroupCalls(group, first)
            calls.numbers, calls.last = self._sequences[sequence], self._optional(last)
        plain = {name: getattr(folded_ledger, name) for name in _PLAIN}
        return RankLedger(
            path,
            **plain,
            groups=groups,
            pairs={(group, peer, sends): number for group, peer, sends, number in folded_ledger.pairs},
            last=self._optional(folded_ledger.last),
            open=tuple([self._shared(Record, row) for row in folded_ledger.open]),
            phases=tuple([self._shared(Phase, row) for row in folded_ledger.phases]),
            dropped={(op, self._sites[site]): count for op, site, count in folded_ledger.dropped},
            steps=_unfolded_steps(*folded_ledger.steps),
            sums=tuple([self._shared(CallSum, row) for row in folded_ledger.sums]),
            raised=tuple([self._shared(Record, row) for row in folded_ledger.raised]),
            handler=self._optional(folded_ledger.handler),
        )

    def _optional(self, row: Optional[_Row]) -> Optional[Record]:
        return self._shared(Record, row) if row is not None else None

    def _shared(self, kind: Type[_Shared], row: _Row) -> _Shared:
        """Return what a row stands for; one of an older version lacks its last fields, which have defaults."""
        fields = dict(zip(kind._fields, row))
        for name, table in (("group", self._groups), ("site", self._sites)):
            if name in fields:
                fields[name] = table[fields[name]]
        if "way" in fields:
            sites = [self._sites[number] for number in fields["way"]]
            fields["way"] = tuple([site for site in sites if site is not None])
        return kind(**fields)


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


def _sequence(data: bytes, numbers: List[int], sequences: "Dict[bytes, array[int]]") -> "array[int]":
    """Return a sequence in the numbers of this process."""
    theirs = array("I")
    theirs.frombytes(data)
    own = array("I", [numbers[number] for number in little_endian(theirs)])
    return sequences.setdefault(own.tobytes(), own)


def little_endian(numbers: "array[Any]") -> "array[Any]":
    """Return numbers in the byte order of a fold, or back."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers
