"""Which rank left the sequence that all ranks share, and at which entry: calls and passes of all ranks side by side.

A rank that skips a backward pass hangs nobody at that point: its next pass meets the one that the others make now, and only the last pass of all
waits. So the sequences are walked from a common entry on. If they differ, the walk looks for the place at which both go on alike. If as many
calls and passes that can meet lie in between on both sides, the ranks only play other parts there; else they have parted.
"""

from collections import Counter
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ddp_probe.reading.whole_ledger import LedgerSite, Record
from ddp_probe.shared.alignment import MOST_RANKS
from ddp_probe.shared.ledger_schema import ABOUT_GROUPS, BATCH, OPERATIONS, PAIRED
from ddp_probe.standing.deciding import Deciding, deciding
from ddp_probe.standing.rank_standing import LedgerStanding, LedgerStandings
from ddp_probe.standing.source_trees import SourceTrees
from ddp_probe.standing.stalls import BACKWARD, FORWARD

LOADER, EXCEPTION = "dataloader", "exception"
_MOST_SKIPPED = 64  # Entries of a side that are passed over to find where both go on alike.
_ALIKE = 6  # This many entries must be alike there, or all that follow on one side.
_LONGEST = 128  # Entries of the past that are compared.
_ABOUT_GROUPS = frozenset(code.name for code in OPERATIONS if ABOUT_GROUPS <= code.code < BATCH)

Way = Tuple[LedgerSite, ...]
_Label = Tuple[object, ...]


class SequenceEntry(NamedTuple):
    """A call or a pass in the sequence of a rank; `number` is how often the pass was entered, or the number of the call in its group."""

    op: str
    number: int
    way: Way
    is_pass: bool
    raised: bool
    group: str = ""
    size: int = 0
    record: int = 1  # The number of its record in the ledger.

    @property
    def ends_loader(self) -> bool:
        """Tell whether a DataLoader was asked for a batch and had none left."""
        return self.raised and self.op == LOADER

    @property
    def site(self) -> LedgerSite:
        """Return the line that makes it."""
        return self.way[-1] if self.way else LedgerSite()


class SequenceParting(NamedTuple):
    """The first entry at which ranks differ: what those make that left, and what the others make there."""

    ranks: Tuple[int, ...]  # Those that left the sequence; all, if nothing tells which have.
    others: Tuple[int, ...]
    shared: Optional[SequenceEntry]  # The last entry that all made.
    made: Optional[SequenceEntry]  # None if a rank has made nothing more.
    usual: Optional[SequenceEntry]
    is_sure: bool  # Whether it is known which side left.
    before: Optional[SequenceEntry] = None  # An earlier entry that only the first side made, and that brought it here.
    trail: Tuple[Optional[SequenceEntry], ...] = ()  # Between which entries a statement decided: the next of each side, and the last that both made.
    decision: Optional[Deciding] = None
    fewer: int = 0  # How many backward passes fewer they have made for as many forwards, if that was before the ring begins.

    @property
    def is_caught(self) -> bool:
        """Tell whether a pass or a call raised on the side that left, and it went on."""
        return self.made is not None and self.made.raised and not self.made.ends_loader

    @property
    def hint(self) -> str:
        """Return what the condition of the statement that decided shows; empty if the statement is not known, or shows nothing."""
        if self.is_caught:
            return EXCEPTION
        return self.decision.statements[0].hint if self.decision is not None and self.decision.statements else ""


def entries(records: Iterable[Record]) -> List[SequenceEntry]:
    """Return what is compared of a sequence: what the main thread does, without calls inside calls and in a signal's handler."""
    kept = [record for record in records if not (record.is_inner or record.in_side_thread or record.signal)]
    latest = max((record.entered_ns for record in kept if record.op not in _ABOUT_GROUPS), default=0)
    return [_entry(record, went_on=latest >= record.left_ns) for record in kept]


def _entry(record: Record, *, went_on: bool) -> SequenceEntry:
    """Return what is compared. What raises last, and the pass around it, raise because the others are gone."""
    way = record.way or ((record.site,) if record.site is not None else ())
    raised = record.state == "raised" and (went_on or record.op == LOADER)
    name, size = (record.group.id, record.group.size) if record.group is not None else ("", 0)
    return SequenceEntry(record.op, record.seq, way, record.is_pass, raised, name, size, record.number)


def parted_sequences(standings: LedgerStandings) -> Optional[SequenceParting]:
    """Return where the sequences of the ranks part first; None if they do not, as far as the ledgers show."""
    ranks = [rank for rank in sorted(standings.ranks) if standings.ranks[rank].ledger.complete][:MOST_RANKS]
    records = {rank: _sequence(standings.ranks[rank]) for rank in ranks}
    if len(ranks) < 2 or not all(any(record.way for record in kept) for kept in records.values()):
        return None  # A ledger of before version 3.
    sequences = {rank: entries(kept) for rank, kept in records.items()}
    if any(kept[0].number > 1 for kept in records.values()):
        earlier = parted_before(sequences)
        if earlier is not None:
            return earlier
    left = part(sequences)
    return left._replace(decision=_decision(standings, left)) if left is not None else None


def parted_before(sequences: Mapping[int, Sequence[SequenceEntry]]) -> Optional[SequenceParting]:
    """Return the ranks that parted before their rings begin: they have made fewer backward passes for as many forwards, or more."""
    first = min(sequences)
    ranks_of: Dict[int, List[int]] = {}
    for rank in sorted(sequences):
        ranks_of.setdefault(_fewer_backward(sequences[first], sequences[rank]), []).append(rank)
    if len(ranks_of) < 2:
        return None
    usual, other = sorted(ranks_of, key=lambda fewer: (-len(ranks_of[fewer]), fewer))[:2]
    is_sure = len(ranks_of[usual]) > len(ranks_of[other])
    blame = ranks_of[other] if is_sure else [*ranks_of[usual], *ranks_of[other]]
    others = ranks_of[usual] if is_sure else []
    return SequenceParting(tuple(sorted(blame)), tuple(others), None, None, None, is_sure, fewer=other - usual)


def _fewer_backward(one: Sequence[SequenceEntry], other: Sequence[SequenceEntry]) -> int:
    """Return how many backward passes fewer than the first rank another has made for as many forwards, from a common entry on."""
    starts = _common_start(one, other)
    numbers = [{entry.op: entry.number for entry in reversed(side[start:])} for side, start in zip((one, other), starts)]
    if any(op not in side for op in (FORWARD, BACKWARD) for side in numbers):
        return 0
    return (numbers[1][FORWARD] - numbers[1][BACKWARD]) - (numbers[0][FORWARD] - numbers[0][BACKWARD])


def _decision(standings: LedgerStandings, left: SequenceParting) -> Optional[Deciding]:
    """Return the statement between the last entry that both sides made and the next of each; a rank that has ended has made its last."""
    made, usual, shared = left.trail
    one = made.way if made is not None else _end(standings, left.ranks)
    other = usual.way if usual is not None else _end(standings, left.others)
    if one is None or other is None:
        return None
    source = SourceTrees(min(standings.ranks[rank].moved() for rank in (*left.ranks, *left.others)))
    return deciding(source, one, other, shared.way if shared is not None else None)


def _end(standings: LedgerStandings, ranks: Sequence[int]) -> Optional[Way]:
    """Return the way of ranks that have ended: none of their functions is left; None if they have not."""
    left = [standings.ranks[rank].left for rank in ranks]
    return () if left and all(each is not None and each.failure is None for each in left) else None


def _sequence(standing: LedgerStanding) -> Sequence[Record]:
    """Return what a rank has done since the rings of its ledger hold all of it."""
    records = standing.sequence()
    calls = [record for record in records if not record.is_pass]
    passes = [record for record in records if record.is_pass]
    begins = max((kept[0].entered_ns for kept in (calls, passes) if kept and kept[0].number > 1), default=0)
    return [record for record in records if record.entered_ns >= begins]


def part(sequences: Mapping[int, Sequence[SequenceEntry]]) -> Optional[SequenceParting]:
    """Return where these sequences part first: each is compared with that of the first rank."""
    first, *rest = sorted(sequences)
    waits_in_forward = any(sequence and sequence[-1].op == FORWARD for sequence in sequences.values())
    for counts_forward in (False, True) if waits_in_forward else (False,):
        walks = {rank: _Walk(sequences[first], sequences[rank], counts_forward) for rank in rest}
        places = {rank: walk.fork() for rank, walk in walks.items()}
        forks = {rank: fork for rank, fork in places.items() if fork is not None}
        if forks:
            return _of_forks(first, walks, forks)
    return None


class _Extra(NamedTuple):
    """A batch that only one side took: its place, and that of the other side."""

    places: Tuple[int, int]


class _Fork(NamedTuple):
    """The places in both sequences at which they part; `extra` is an entry before that which only one side made."""

    one: int
    other: int
    extra: Tuple[Optional[_Extra], Optional[_Extra]] = (None, None)


def _of_forks(first: int, walks: Dict[int, "_Walk"], forks: Dict[int, _Fork]) -> Optional[SequenceParting]:
    earliest = min(fork.one for fork in forks.values())
    there = [rank for rank in sorted(forks) if forks[rank].one == earliest]
    here = sorted({first, *walks} - set(there))
    walk, fork = walks[there[0]], forks[there[0]]
    side = walk.unusual(fork) if len(here) == len(there) else int(len(there) < len(here))
    sides = (here, there)
    shared = walk.entry(0, fork.one - 1)
    made = [walk.entry(0, fork.one), walk.entry(1, fork.other)]
    if side < 0:
        return SequenceParting(tuple(sorted((*here, *there))), (), shared, made[1], made[0], False, trail=(made[1], made[0], shared))
    mine, usual, before = made[side], made[1 - side], None
    trail = mine, usual, shared
    if mine is not None and mine.raised:
        places = (fork.one + 1, fork.other + 1)
        trail = walk.entry(side, places[side]), usual if mine.ends_loader else walk.entry(1 - side, places[1 - side]), mine
    extra = fork.extra[side]
    if mine is not None and mine.ends_loader and extra is not None:
        before = walk.entry(side, extra.places[side])
        trail = before, walk.entry(1 - side, extra.places[1 - side]), walk.entry(side, extra.places[side] - 1)
    return SequenceParting(tuple(sides[side]), tuple(sides[1 - side]), shared, mine, usual, True, before, trail)


class _Walk:
    """Two sequences side by side, from the first entry that both hold."""

    def __init__(self, one: Sequence[SequenceEntry], other: Sequence[SequenceEntry], counts_forward: bool) -> None:
        starts = _common_start(one, other)
        self.sides = (one[starts[0] :], other[starts[1] :])
        by_way = all(len(entry.way) for side in self.sides for entry in side)
        self.labels = tuple([_label(entry, by_way) for entry in side] for side in self.sides)
        self._lines: Tuple[Set[_Label], ...] = tuple({label[:-1] for label in labels} for labels in self.labels)
        self._counts_forward = counts_forward
        self._is_ddp = any(entry.op == FORWARD for side in self.sides for entry in side)

    def entry(self, side: int, place: int) -> Optional[SequenceEntry]:
        """Return an entry of a side, if it has made as many."""
        return self.sides[side][place] if 0 <= place < len(self.sides[side]) else None

    def fork(self) -> Optional[_Fork]:
        """Return where they part; None if one side is the beginning of the other."""
        one, other = 0, 0
        extra: List[Optional[_Extra]] = [None, None]
        while one < len(self.labels[0]) and other < len(self.labels[1]):
            if self.labels[0][one] == self.labels[1][other]:
                one, other = one + 1, other + 1
                continue
            skipped = self._skipped(one, other)
            if skipped is None or not self._is_even(one, other, skipped):
                return _Fork(one, other, (extra[0], extra[1]))
            for side, place in ((0, one), (1, other)):
                if extra[side] is None and any(entry.op == LOADER for entry in self.sides[side][place : place + skipped[side]]):
                    extra[side] = _Extra((one, other))
            one, other = one + skipped[0], other + skipped[1]
        return None

    def _skipped(self, one: int, other: int) -> Optional[Tuple[int, int]]:
        """Return how many entries of each side lie before both go on alike, the fewest."""
        for total in range(1, 2 * _MOST_SKIPPED):
            for mine in range(max(0, total - _MOST_SKIPPED), min(total, _MOST_SKIPPED) + 1):
                if self._goes_on(one + mine, other + total - mine):
                    return mine, total - mine
        return None

    def _goes_on(self, one: int, other: int) -> bool:
        mine, others = self.labels[0][one : one + _ALIKE], self.labels[1][other : other + _ALIKE]
        compared = min(len(mine), len(others))
        return compared > 0 and mine[:compared] == others[:compared]

    def _is_even(self, one: int, other: int, skipped: Tuple[int, int]) -> bool:
        """Tell whether both sides have made as many entries that can meet in between."""
        counts = [self._meetings(0, one, skipped[0]), self._meetings(1, other, skipped[1])]
        return counts[0] == counts[1]

    def _meetings(self, side: int, place: int, size: int) -> Dict[Tuple[str, str], int]:
        meetings: Dict[Tuple[str, str], int] = Counter()
        for at in range(place, min(place + size, len(self.sides[side]))):
            entry = self.sides[side][at]
            if self._can_meet(entry, self.labels[side][at][:-1] in self._lines[1 - side]):
                meetings[(entry.op if entry.is_pass else "", entry.group)] += 1
        return meetings

    def _can_meet(self, entry: SequenceEntry, is_shared: bool) -> bool:
        """Tell whether ranks can meet in an entry. A forward that only one rank ever makes is its own, unless buffers are sent in it."""
        if not entry.is_pass:
            return entry.op not in PAIRED and entry.op not in _ABOUT_GROUPS
        if entry.op == FORWARD:
            return self._counts_forward or is_shared
        return entry.op == BACKWARD and self._is_ddp

    def unusual(self, fork: _Fork) -> int:
        """Return the side that does what neither has done elsewhere after the same entries; -1 if nothing tells."""
        places = (fork.one, fork.other)
        made = [self.entry(side, places[side]) for side in (0, 1)]
        raised = [entry is not None and entry.raised for entry in made]
        if raised[0] != raised[1]:
            return raised.index(True)
        wanted = [self.labels[side][places[side]] for side in (0, 1)]
        for length in range(min(*places, _LONGEST), 0, -1):
            context = self.labels[0][fork.one - length : fork.one]
            if context != self.labels[1][fork.other - length : fork.other]:
                continue
            after = Counter(label for side in (0, 1) for label in _after(self.labels[side], context, places[side]))
            if (after[wanted[0]] > 0) != (after[wanted[1]] > 0):
                return 1 if after[wanted[0]] else 0
        known = [self.labels[side][places[side]] in self.labels[side][: places[side]] for side in (0, 1)]
        return known.index(False) if known[0] != known[1] else -1


def _common_start(one: Sequence[SequenceEntry], other: Sequence[SequenceEntry]) -> Tuple[int, int]:
    """Return the places from which both sequences hold the same; a ring has lost its first entries."""
    places = {(entry.op, entry.group, entry.number): place for place, entry in enumerate(other)}
    for place, entry in enumerate(one):
        found = places.get((entry.op, entry.group, entry.number))
        if found is not None:
            return place, found
    return 0, 0


def _label(entry: SequenceEntry, by_way: bool) -> _Label:
    return entry.op, entry.way if by_way else entry.way[-1:], entry.size, entry.raised


def _after(labels: Sequence[_Label], context: Sequence[_Label], but: int) -> List[_Label]:
    """Return what comes after these entries, wherever else they are."""
    size = len(context)
    ends = (end for end in range(size, len(labels)) if end != but and labels[end - 1] == context[-1])
    return [labels[end] for end in ends if labels[end - size : end] == context]
