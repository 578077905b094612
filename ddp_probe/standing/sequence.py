"""Which rank left the sequence that all ranks share, and at which entry: calls and passes of all ranks side by side.

A rank that skips a backward pass hangs nobody at that point: its next pass meets the one that the others make now, and only the last pass of all
waits. So the sequences are walked from a common entry on. If they differ, the walk looks for the place at which both go on alike. If as many
calls and passes that can meet lie in between on both sides, the ranks only play other parts there; else they have parted.
"""

from collections import Counter
from typing import AbstractSet, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ddp_probe.reading.whole_ledger import LedgerSite, Record
from ddp_probe.shared.alignment import MOST_RANKS
from ddp_probe.shared.ledger_schema import PAIRED
from ddp_probe.standing.deciding import Deciding, KnownLoops, Statement, deciding
from ddp_probe.standing.held_back import no_sync_condition
from ddp_probe.standing.rank_standing import LedgerStanding, LedgerStandings
from ddp_probe.standing.source_trees import SourceTrees
from ddp_probe.standing.stalls import BACKWARD, CALLS_ABOUT_GROUPS, FORWARD
from ddp_probe.standing.stopped_loops import stopped_loop
from ddp_probe.standing.thread_calls import thread_calls, unread

LOADER, EXCEPTION = "dataloader", "exception"
_ALONE = ("save", "load")  # What one rank does for all in a job that is right.
_MOST_SKIPPED = 64  # Entries of a side that are passed over to find where both go on alike.
_ALIKE = 6  # This many entries must be alike there, or all that follow on one side.
_MOST_IN_A_STEP = 8  # Ranks of a run without any failure whose passes are compared: it takes a tenth of a second for each.
_LONGEST = 128  # Entries of the past that are compared.

Way = Tuple[LedgerSite, ...]
Members = Mapping[str, AbstractSet[int]]
"""The ranks of each group by its name, of groups of which all are known."""
_Label = Tuple[object, ...]


class UnlikeCalls(NamedTuple):
    """The first number of a group at which ranks made unlike calls, and the ranks that made each of them."""

    group: str
    number: int
    sides: Tuple[Tuple[int, ...], ...]

    def side_of(self, rank: int) -> int:
        """Return which of the calls a rank has made, from 1 on; 0 if that is not known."""
        return next((number for number, ranks in enumerate(self.sides, 1) if rank in ranks), 0)


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
    is_held_back: bool = False  # Of a forward pass: its gradients are not exchanged.
    is_over: bool = True  # It returned.
    side: int = 0  # Which of the unlike calls it is that ranks made at its number.
    model: int = 0  # Of a forward pass in which ranks meet: the number of its model on this rank.
    sends_buffers: bool = False  # Of a forward pass.
    has_failed: bool = False  # Of a DataLoader: it raised an exception, and not only had no more batches.

    @property
    def ends_loader(self) -> bool:
        """Tell whether a DataLoader was asked for a batch and had none left."""
        return self.raised and self.op == LOADER and not self.has_failed

    @property
    def site(self) -> LedgerSite:
        """Return the line that makes it."""
        return self.way[-1] if self.way else LedgerSite()


_Sequence = List[SequenceEntry]


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
    sides: Tuple[Tuple[int, ...], ...] = ()  # If it is not known which side left: the ranks that made `made`, and those that made `usual`.
    loaders: FrozenSet[Tuple[str, int]] = frozenset()  # The lines at which a DataLoader was asked for batches.
    is_swapped: bool = False  # Both make the same passes, in another order.
    is_other_model: bool = False  # Both make a forward pass, of models that do not belong together.
    is_in_thread: bool = False  # The others make `usual` in a side thread, and nobody reads what the thread raised.
    fewer: int = 0  # How many backward passes fewer they have made for as many forwards, if that was before the ring begins.
    passes_at: Optional[LedgerSite] = None  # If `fewer`: the one line at which the backward passes are made.
    arms: Tuple[LedgerSite, ...] = ()  # The lines at which some of the others make `usual`, if those are not its own: another arm of an `if`.

    @property
    def holds_back(self) -> bool:
        """Tell whether both sides went on to the same forward pass, and one of them held its gradients back there."""
        made, usual = self.made, self.usual
        is_same = made is not None and usual is not None and (made.op, made.way) == (usual.op, usual.way)
        return is_same and made is not None and usual is not None and made.is_held_back != usual.is_held_back

    def is_at(self, unlike: UnlikeCalls) -> bool:
        """Tell whether both sides came to their unlike calls alike: then nothing parted them before."""
        made, usual = self.made, self.usual
        if made is None or usual is None or (made.op, made.way) != (usual.op, usual.way):
            return False
        return (made.group, made.number) == (usual.group, usual.number) == (unlike.group, unlike.number)

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
    latest = max((record.entered_ns for record in kept if record.op not in CALLS_ABOUT_GROUPS), default=0)
    return [_entry(record, went_on=latest >= record.left_ns) for record in kept]


def entry_of(record: Record) -> SequenceEntry:
    """Return the entry of a call or a pass, whatever came after it."""
    return _entry(record, went_on=False)


def _entry(record: Record, *, went_on: bool) -> SequenceEntry:
    """Return what is compared. What raises last, and the pass around it, raise because the others are gone."""
    way = record.way or ((record.site,) if record.site is not None else ())
    raised = record.state == "raised" and (went_on or (record.op == LOADER and not record.has_failed))
    name, size = (record.group.id, record.group.size) if record.group is not None else ("", 0)
    entry = SequenceEntry(record.op, record.seq, way, record.is_pass, raised, name, size, record.number)
    entry = entry._replace(is_held_back=record.is_held_back, is_over=record.state == "returned")
    entry = entry._replace(has_failed=raised and record.has_failed)
    return entry._replace(model=record.model, sends_buffers=record.sends_buffers)


def parted_sequences(
    standings: LedgerStandings,
    unlike: Optional[UnlikeCalls] = None,
) -> Optional[SequenceParting]:
    """Return where the sequences of the ranks part first; None if they do not, as far as the ledgers show.

    Of a library that makes all calls from one line of the job, `unlike` says which of them are not the same.
    """
    records = {rank: _sequence(standings.ranks[rank]) for rank in compared_ranks(standings)}
    if not records or not all(any(record.way for record in kept) for kept in records.values()):
        return None  # A ledger of before version 3.
    made = {rank: _with_sides(entries(kept), unlike, rank) for rank, kept in records.items()}
    members = {name: ranks for name, (_, ranks) in standings.groups.items()}
    sequences = _without_roles(_without_waits(made, members))
    if any(kept[0].number > 1 for kept in records.values()):
        earlier = parted_before(sequences)
        if earlier is not None:
            return earlier
    left = part(sequences, {name: ranks for name, (group, ranks) in standings.groups.items() if len(ranks) == group.size})
    if left is not None and unlike is not None and left.is_at(unlike):
        return None
    if left is not None:
        asked = (entry.site for sequence in sequences.values() for entry in sequence if entry.op == LOADER)
        left = left._replace(loaders=frozenset((site.file, site.line) for site in asked))
        files = {site.file for sequence in sequences.values() for entry in sequence for site in entry.way}
        decision = _decision(standings, left)
        if decision is None or all(statement.kind == "call" for statement in decision.statements):
            decision = _of_library(standings, left, files) or decision
        left = _by_statement(left._replace(decision=decision))
    return left


def _with_sides(sequence: Iterable[SequenceEntry], unlike: Optional[UnlikeCalls], rank: int) -> _Sequence:
    if unlike is None:
        return list(sequence)
    sides = {(unlike.group, unlike.number): unlike.side_of(rank)}
    return [entry._replace(side=sides.get((entry.group, entry.number), 0)) for entry in sequence]


def _without_waits(sequences: Dict[int, _Sequence], members: Members) -> Dict[int, _Sequence]:
    """Return the sequences without the exceptions of calls that others never came to.

    A library may catch the timeout of one, and go on.
    """
    makers: Dict[Tuple[str, str, int], Set[int]] = {}
    for rank, sequence in sequences.items():
        for entry in sequence:
            if entry.group:
                makers.setdefault((entry.op, entry.group, entry.number), set()).add(rank)
    answer: Dict[int, _Sequence] = {}
    for rank, sequence in sequences.items():
        answer[rank] = list(sequence)
        for place, entry in enumerate(sequence):
            if entry.raised and entry.group:
                awaited = set(members.get(entry.group, ())) & set(sequences)
                is_met = awaited <= makers[entry.op, entry.group, entry.number]
                answer[rank][place] = entry._replace(raised=is_met)
    return answer


def _without_roles(sequences: Dict[int, List[SequenceEntry]]) -> Dict[int, List[SequenceEntry]]:
    """Return the sequences without sends and receives, if ranks make them at other lines than others: the stages of a pipeline part at each step."""
    places = [{(entry.op, entry.way) for entry in sequence if entry.op in PAIRED} for sequence in sequences.values()]
    if all(place == places[0] for place in places):
        return sequences
    return {rank: [entry for entry in sequence if entry.op not in PAIRED] for rank, sequence in sequences.items()}


def _by_statement(left: SequenceParting) -> SequenceParting:
    """Blame the side that the statement which decided led out of the common way."""
    decision = left.decision
    if left.is_sure or not left.sides or decision is None:
        return left
    side = _side_of(decision.statements)
    if side < 0:
        return left
    if side == 0:
        return left._replace(ranks=left.sides[0], others=left.sides[1], is_sure=True)
    return left._replace(ranks=left.sides[1], others=left.sides[0], made=left.usual, usual=left.made, is_sure=True)


def _side_of(statements: Sequence[Statement]) -> int:
    """Return the side that left; -1 if that is not known.

    A jump, or an `except`, leads a side out. Of several statements, a condition on the rank counts if no other
    is on a rank's own values: the side that it leads on.
    """
    first = statements[0]
    if len(statements) == 1:
        return first.side
    is_on_rank = first.hint == "rank" and first.kind == "if" and not first.jump
    if not is_on_rank or any(statement.hint for statement in statements[1:]):
        return -1
    return 1 - first.taken.index(False) if first.taken.count(False) == 1 else -1


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
    if not is_sure:
        even = [_is_even(sequences[ranks_of[fewer][0]]) for fewer in (usual, other)]
        usual, other = (other, usual) if even == [False, True] else (usual, other)
        is_sure = even[0] != even[1]
    blame = ranks_of[other] if is_sure else [*ranks_of[usual], *ranks_of[other]]
    others = ranks_of[usual] if is_sure else []
    sites: Set[LedgerSite] = set()
    for sequence in sequences.values():
        sites.update(entry.site for entry in sequence if entry.op == BACKWARD)
    left = SequenceParting(tuple(sorted(blame)), tuple(others), None, None, None, is_sure, fewer=other - usual)
    return left._replace(passes_at=sites.pop() if len(sites) == 1 else None)


def left_in_thread(standings: LedgerStandings) -> Optional[SequenceParting]:
    """Return the first collective of a side thread that ranks never made, although they were to make it before what they went on to."""
    ranks = compared_ranks(standings)
    records = {rank: standings.ranks[rank].sequence() for rank in ranks}
    calls = {rank: thread_calls(records[rank]) for rank in ranks}
    for key in sorted({key for each in calls.values() for key in each}, key=lambda key: key[1]):
        makers = [rank for rank in ranks if key in calls[rank]]
        others = [rank for rank in ranks if standings.ranks[rank].count(key[0]) < key[1]]
        is_usual = all((key[0], key[1] - 1) in calls[rank] for rank in ranks)
        if not is_usual or not others or sorted((*makers, *others)) != ranks or len(ranks) != len(standings.ranks):
            continue
        met = standings.ranks[makers[0]].wall(calls[makers[0]][key].entered_ns)
        ahead = [record for record in records[others[0]] if standings.ranks[others[0]].wall(record.entered_ns) > met]
        if not ahead:
            continue
        usual, made = entry_of(calls[makers[0]][key]), entry_of(ahead[0])
        source = SourceTrees(min(standings.ranks[rank].moved() for rank in ranks))
        files = [site.file for each in records.values() for record in each for site in record.way]
        decision = unread(source, usual.way, files)
        return SequenceParting(tuple(others), tuple(makers), None, made, usual, True, decision=decision, is_in_thread=True)
    return None


def swapped_passes(standings: LedgerStandings) -> Optional[SequenceParting]:
    """Return the first backward passes that ranks have made in another order in one step: gradients of different models have met."""
    ranks = compared_ranks(standings)
    chosen = ranks[:: max(1, len(ranks) // _MOST_IN_A_STEP)][:_MOST_IN_A_STEP]
    sequences = {rank: entries(_sequence(standings.ranks[rank])) for rank in chosen}
    if len(sequences) < 2:
        return None
    first, *rest = sequences
    for rank in rest:
        sides = [sequences[first], sequences[rank]]
        sides = [side[start:] for side, start in zip(sides, _common_start(*sides))]
        places = _swapped(sides[0], sides[1])
        if places is not None:
            usual, made = (side[place] for side, place in zip(sides, places))
            shared = sides[0][places[0] - 1] if places[0] else None
            trail = made, usual, shared
            left = SequenceParting((first, rank), (), shared, made, usual, False, trail=trail, sides=((rank,), (first,)), is_swapped=True)
            return left._replace(decision=_decision(standings, left))
    return None


def _swapped(one: Sequence[SequenceEntry], other: Sequence[SequenceEntry]) -> Optional[Tuple[int, int]]:
    """Return the places of the first backward passes that are made in another order, all of them behind the forwards of their step."""
    steps = [_steps(side) for side in (one, other)]
    for first, second in zip(*steps):
        lines = [[side[place].site for place in step] for side, step in zip((one, other), (first, second))]
        if lines[0] != lines[1]:
            is_swap = len(lines[0]) > 1 and sorted(lines[0]) == sorted(lines[1])
            return (first[0], second[0]) if is_swap else None
    return None


def _steps(side: Sequence[SequenceEntry]) -> List[List[int]]:
    """Return the places of the backward passes of each step that makes as many forwards before them."""
    steps: List[List[int]] = []
    forwards = 0
    for place, entry in enumerate(side):
        if entry.op == FORWARD:
            if steps and steps[-1]:
                forwards = 0
            forwards += 1
            if forwards == 1:
                steps.append([])
        elif entry.op == BACKWARD and steps and len(steps[-1]) < forwards:
            steps[-1].append(place)
    return steps


def compared_ranks(standings: LedgerStandings) -> List[int]:
    """Return the ranks whose sequences can be compared."""
    ranks = [rank for rank in sorted(standings.ranks) if standings.ranks[rank].ledger.complete][:MOST_RANKS]
    return ranks if len(ranks) > 1 else []


def _fewer_backward(one: Sequence[SequenceEntry], other: Sequence[SequenceEntry]) -> int:
    """Return how many backward passes fewer than the first rank another has made for as many forwards, from a common entry on."""
    starts = _common_start(one, other)
    numbers = [{entry.op: entry.number for entry in reversed(side[start:])} for side, start in zip((one, other), starts)]
    if any(op not in side for op in (FORWARD, BACKWARD) for side in numbers):
        return 0
    return (numbers[1][FORWARD] - numbers[1][BACKWARD]) - (numbers[0][FORWARD] - numbers[0][BACKWARD])


def _is_even(side: Sequence[SequenceEntry]) -> bool:
    """Tell whether a rank has made a backward pass for each forward before its first entry; one may be under way."""
    numbers = {entry.op: entry.number for entry in reversed(side) if entry.op in (FORWARD, BACKWARD)}
    begins = next((entry.op for entry in side if entry.op in numbers), FORWARD)
    return len(numbers) > 1 and numbers[FORWARD] - numbers[BACKWARD] == (0 if begins == FORWARD else 1)


def _decision(standings: LedgerStandings, left: SequenceParting) -> Optional[Deciding]:
    """Return the statement between the last entry that both sides made and the next of each; a rank that has ended has made its last."""
    made, usual, shared = left.trail
    ranks, others = left.sides or (left.ranks, left.others)
    one = made.way if made is not None else _end(standings, ranks)
    other = usual.way if usual is not None else _end(standings, others)
    if one is None or other is None:
        return None
    source = SourceTrees(min(standings.ranks[rank].moved() for rank in (*left.ranks, *left.others)))
    if left.holds_back:
        return no_sync_condition(source, one)
    is_over = shared is not None and shared.ends_loader and left.shared is shared
    ends = any(entry is not None and entry.ends_loader for entry in (made, usual, left.made, left.usual))
    # A loader that a side has passed on its way to its next entry has ended there.
    passed = [entry for entry in (left.made, left.usual) if entry is not None and entry not in left.trail]
    over = {(entry.site.file, entry.site.line) for entry in passed if entry.op == LOADER}
    known = KnownLoops(is_over, frozenset() if ends else left.loaders - over)
    return deciding(source, one, other, shared.way if shared is not None else None, known)


def _of_library(standings: LedgerStandings, left: SequenceParting, files: Iterable[str]) -> Optional[Deciding]:
    """Return why the loop of a library ended on one side: the other goes on at the line that all came from.

    If both do, the other takes the next turn of the loop: a batch, or a forward pass.
    """
    made, usual, shared = left.trail
    goes_on = [entry is not None and shared is not None and entry.way == shared.way for entry in (made, usual)]
    if all(goes_on):
        goes_on = [entry is not None and entry.op in (LOADER, FORWARD) for entry in (made, usual)]
    is_out_of_batches = any(entry is not None and entry.ends_loader for entry in (left.made, left.usual))
    if goes_on[0] == goes_on[1] or is_out_of_batches:
        return None
    source = SourceTrees(min(standings.ranks[rank].moved() for rank in (*left.ranks, *left.others)))
    return stopped_loop(source, files)


def _end(standings: LedgerStandings, ranks: Sequence[int]) -> Optional[Way]:
    """Return the way of ranks that have ended: none of their functions is left; None if they have not."""
    left = [standings.ranks[rank].left for rank in ranks]
    return () if left and all(each is not None and each.failure is None for each in left) else None


def kept_sequence(standing: LedgerStanding) -> List[SequenceEntry]:
    """Return what is compared of a rank, since the rings of its ledger hold all of it."""
    return entries(_sequence(standing))


def _sequence(standing: LedgerStanding) -> Sequence[Record]:
    """Return what a rank has done since the rings of its ledger hold all of it."""
    records = standing.sequence()
    calls = [record for record in records if not record.is_pass]
    passes = [record for record in records if record.is_pass]
    begins = max((kept[0].entered_ns for kept in (calls, passes) if kept and kept[0].number > 1), default=0)
    return [record for record in records if record.entered_ns >= begins]


def part(sequences: Mapping[int, Sequence[SequenceEntry]], members: Optional[Members] = None) -> Optional[SequenceParting]:
    """Return where these sequences part first: each is compared with that of the first rank, without calls of groups that one of both is not in."""
    first, *rest = sorted(sequences)
    members = members or {}
    waits_in_forward = any(sequence and sequence[-1].op == FORWARD for sequence in sequences.values())
    for counts_forward in (False, True) if waits_in_forward else (False,):
        walks = {}
        for rank in rest:
            apart = {group for group, ranks in members.items() if not {first, rank} <= ranks}
            walks[rank] = _Walk(sequences[first], sequences[rank], counts_forward, apart)
        places = {rank: walk.fork() for rank, walk in walks.items()}
        forks = {rank: fork for rank, fork in places.items() if fork is not None}
        if forks:
            return _of_forks(first, walks, forks, members)
    return None


class _Extra(NamedTuple):
    """A batch that only one side took: its place, and that of the other side."""

    places: Tuple[int, int]


class _Fork(NamedTuple):
    """The places in both sequences at which they part; `extra` is an entry before that which only one side made."""

    one: int
    other: int
    extra: Tuple[Optional[_Extra], Optional[_Extra]] = (None, None)
    behind: Tuple[int, int] = (0, 0)  # How many entries each side alone has made since both went on alike, as it has done before.

    @property
    def alike(self) -> Tuple[int, int]:
        """Return the places in both sequences behind the last entry that both made."""
        return self.one - self.behind[0], self.other - self.behind[1]


def _of_forks(first: int, walks: Dict[int, "_Walk"], forks: Dict[int, _Fork], members: Members) -> Optional[SequenceParting]:
    begins = {rank: walks[rank].place_of_one(fork.alike[0]) for rank, fork in forks.items()}
    there = [rank for rank in sorted(forks) if begins[rank] == min(begins.values())]
    here = sorted({first, *walks} - set(there))
    walk, fork = walks[there[0]], forks[there[0]]
    for entry in (walk.entry(0, fork.one), walk.entry(1, fork.other)):
        meets = entry is not None and entry.op not in CALLS_ABOUT_GROUPS
        if entry is not None and meets and {first, there[0]} <= members.get(entry.group, set()):
            here = [rank for rank in here if rank in members[entry.group]]
            there = [rank for rank in there if rank in members[entry.group]]
    side = walk.unusual(fork) if len(here) == len(there) else int(len(there) < len(here))
    sides = (here, there)
    shared = walk.entry(0, fork.alike[0] - 1)
    made = [walk.shown(0, fork.one), walk.shown(1, fork.other)]
    if side < 0:
        trail = walk.next_compared(1, fork.other), walk.next_compared(0, fork.one), shared
        ranks = tuple(sorted((*here, *there)))
        return SequenceParting(ranks, (), shared, made[1], made[0], False, trail=trail, sides=(tuple(there), tuple(here)))
    mine, usual, before = made[side], made[1 - side], None
    places = (fork.one, fork.other)
    trail = walk.next_compared(side, places[side]), walk.next_compared(1 - side, places[1 - side]), shared
    if mine is not None and mine.raised:
        trail = walk.entry(side, places[side] + 1), usual if mine.ends_loader else walk.entry(1 - side, places[1 - side] + 1), mine
    extra = fork.extra[side]
    if mine is not None and mine.ends_loader and extra is not None:
        before = walk.entry(side, extra.places[side])
        trail = before, walk.entry(1 - side, extra.places[1 - side]), walk.entry(side, extra.places[side] - 1)
    others = sides[1 - side]
    arms = _arms(usual, [walks[rank].sides[1] for rank in others if rank != first])
    return SequenceParting(tuple(sides[side]), tuple(others), shared, mine, usual, True, before, trail, arms=arms)


def _arms(usual: Optional[SequenceEntry], sequences: Iterable[Sequence[SequenceEntry]]) -> Tuple[LedgerSite, ...]:
    """Return the other lines at which ranks make an entry that can meet."""
    if usual is None or not usual.group:
        return ()
    same = (usual.op, usual.group, usual.number)
    sites: Set[LedgerSite] = set()
    for sequence in sequences:
        sites.update(entry.site for entry in sequence if (entry.op, entry.group, entry.number) == same)
    return tuple(sorted(sites - {usual.site}))


class _Walk:
    """Two sequences side by side, from the first entry that both hold."""

    def __init__(self, one: Sequence[SequenceEntry], other: Sequence[SequenceEntry], counts_forward: bool, apart: AbstractSet[str]) -> None:
        starts = _common_start(one, other)
        sides = (one[starts[0] :], other[starts[1] :])
        by_way = all(len(entry.way) for side in sides for entry in side)
        kept = _compared_places(sides, by_way, apart)
        self.sides = tuple([side[place] for place in places] for side, places in zip(sides, kept))
        self.labels = tuple([_label(entry, by_way) for entry in side] for side in self.sides)
        self._places_of_one = [starts[0] + place for place in kept[0]]
        self._lines: Tuple[Set[_Label], ...] = tuple({label[:-1] for label in labels} for labels in self.labels)
        self._places = tuple({(entry.op, entry.site) for entry in side} for side in self.sides)
        self._counts_forward = counts_forward
        self._is_ddp = any(entry.op == FORWARD for side in self.sides for entry in side)
        self._own: Tuple[Set[_Label], Set[_Label]] = (set(), set())  # What one side alone has made, before both went on alike.

    def place_of_one(self, place: int) -> int:
        """Return where a place of the first side is in all that its rank has made."""
        return self._places_of_one[place]

    def entry(self, side: int, place: int) -> Optional[SequenceEntry]:
        """Return an entry of a side, if it has made as many."""
        return self.sides[side][place] if 0 <= place < len(self.sides[side]) else None

    def shown(self, side: int, place: int) -> Optional[SequenceEntry]:
        """Return the entry that tells where a side went: the first one behind what only this side ever saves or loads, and nothing is wrong with."""
        for entry, label in zip(self.sides[side][place:], self.labels[side][place:]):
            if entry.op not in _ALONE or entry.raised or label[:-1] in self._lines[1 - side]:
                return entry
        return self.entry(side, place)

    def next_compared(self, side: int, place: int) -> Optional[SequenceEntry]:
        """Return the next entry that the other side makes too, or that ranks can meet in; what only one side ever makes shows no other branch.

        A line that both come to counts as well, by whichever way: the loop of a helper that trains here and validates there.
        """
        for at in range(place, min(place + _MOST_SKIPPED, len(self.sides[side]))):
            entry = self.sides[side][at]
            is_shared = self.labels[side][at][:-1] in self._lines[1 - side]
            if is_shared or self._can_meet(entry, is_shared) or (entry.op, entry.site) in self._places[1 - side]:
                return entry
        return self.entry(side, place)

    def fork(self) -> Optional[_Fork]:
        """Return where they part; None if one side is the beginning of the other."""
        one, other = 0, 0
        extra: List[Optional[_Extra]] = [None, None]
        lacking: List[Optional[_Fork]] = [None, None]
        while one < len(self.labels[0]) and other < len(self.labels[1]):
            if self.labels[0][one] == self.labels[1][other]:
                one, other = one + 1, other + 1
                continue
            stood_in = self._stood_in((one, other))
            if stood_in is not None:
                one, other = stood_in
                continue
            skipped = self._skipped(one, other)
            if skipped is None or not self._is_even(one, other, skipped):
                behind = self._own_made(0, one), self._own_made(1, other)
                fork = _Fork(one + behind[0], other + behind[1], (extra[0], extra[1]), behind)
                return self._began_before(fork, lacking)
            for side, place in ((0, one), (1, other)):
                if extra[side] is None and any(entry.op == LOADER for entry in self.sides[side][place : place + skipped[side]]):
                    extra[side] = _Extra((one, other))
                if not skipped[side] and lacking[side] is None and self._is_shared(1 - side, (one, other), skipped):
                    lacking[side] = _Fork(one, other)
                made = self.labels[side][place : place + skipped[side]]
                self._own[side].update(label for label in made if label[:-1] not in self._lines[1 - side])
            one, other = one + skipped[0], other + skipped[1]
        return None

    def _own_made(self, side: int, place: int) -> int:
        """Return how many entries from here a side alone has made before, and gone on from; 0 if it has not gone on now."""
        for at in range(place, len(self.labels[side])):
            entry = self.sides[side][at]
            if self.labels[side][at] not in self._own[side]:
                return at - place
            if entry.is_pass and not (entry.is_over or entry.ends_loader):
                break
        return 0

    def _stood_in(self, places: Tuple[int, int]) -> Optional[Tuple[int, int]]:
        """Return where both go on after a side whose loader had ended made the calls that the other makes with its batches, as in Join.

        It makes them all from one line, until the loader of the other has ended as well.
        """
        for side in (0, 1):
            begins = [place + 1 for place in places]
            stands_in, end = self.entry(side, begins[side]), self.entry(side, places[side])
            if end is None or stands_in is None or stands_in.is_pass or not end.ends_loader:
                continue
            try:
                begins[1 - side] += self.labels[1 - side][places[1 - side] :].index(self.labels[side][places[side]])
            except ValueError:
                continue
            goes_on = self._behind(0, begins[0], stands_in.way), self._behind(1, begins[1], stands_in.way)
            calls = [self._calls(each, places[each], goes_on[each]) for each in (0, 1)]
            if calls[0] == calls[1]:
                return goes_on
        return None

    def _behind(self, side: int, place: int, way: Way) -> int:
        """Return the first place from this one on whose entry is not made by this way."""
        while place < len(self.sides[side]) and self.sides[side][place].way[: len(way)] == way:
            place += 1
        return place

    def _calls(self, side: int, begin: int, end: int) -> List[Tuple[str, str, int]]:
        """Return the calls between two places of a side in which ranks meet."""
        kept = [entry for entry in self.sides[side][begin:end] if not entry.is_pass and self._can_meet(entry, is_shared=True)]
        return [(entry.op, entry.group, entry.number) for entry in kept]

    def _is_shared(self, side: int, places: Tuple[int, int], skipped: Tuple[int, int]) -> bool:
        """Tell whether a side has made an entry here that the other side makes elsewhere; of a batch, `extra` knows more."""
        begin = places[side]
        made = [label for label in self.labels[side][begin : begin + skipped[side]] if label[0] != LOADER]
        return any(label[:-1] in self._lines[1 - side] for label in made)

    def _began_before(self, fork: _Fork, lacking: Sequence[Optional[_Fork]]) -> _Fork:
        """Return the earlier place at which a side lacks an entry that the other made, if it takes another turn now and the other has left the loop.

        It has done a turn twice, or once more, and has not finished it the first time.
        """
        places = (fork.one, fork.other)
        repeats = [self.labels[side][places[side]] in self.labels[side][: places[side]] for side in (0, 1)]
        if repeats[0] == repeats[1]:
            return fork
        return lacking[repeats.index(True)] or fork

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
            return entry.op not in PAIRED and entry.op not in CALLS_ABOUT_GROUPS
        if entry.op == FORWARD:
            return self._counts_forward or is_shared
        return entry.op == BACKWARD and self._is_ddp

    def unusual(self, fork: _Fork) -> int:
        """Return the side that does what neither has done elsewhere after the same entries; -1 if nothing tells."""
        sides = [self._unusual(places) for places in (fork.alike, (fork.one, fork.other))]
        return next((side for side in sides if side >= 0), -1)

    def _unusual(self, places: Tuple[int, int]) -> int:
        made = [self.entry(side, places[side]) for side in (0, 1)]
        raised = [entry is not None and entry.raised for entry in made]
        if raised[0] != raised[1]:
            side = raised.index(True)
            if not self._asks_no_more(made[side], 1 - side, places[1 - side]):
                return side
        wanted = [self.labels[side][places[side]] for side in (0, 1)]
        for length in range(min(*places, _LONGEST), 0, -1):
            context = self.labels[0][places[0] - length : places[0]]
            if context != self.labels[1][places[1] - length : places[1]]:
                continue
            after = Counter(label for side in (0, 1) for label in _after(self.labels[side], context, places[side]))
            if (after[wanted[0]] > 0) != (after[wanted[1]] > 0):
                return 1 if after[wanted[0]] else 0
        known = [self.labels[side][places[side]] in self.labels[side][: places[side]] for side in (0, 1)]
        return known.index(False) if known[0] != known[1] else -1

    def _asks_no_more(self, end: Optional[SequenceEntry], side: int, place: int) -> bool:
        """Tell whether an entry is the end of a DataLoader that the other side, whose own may end, let be."""
        if end is None or not end.ends_loader:
            return False
        asked = (entry for entry in self.sides[side][place:] if entry.op == LOADER)
        return all(entry.way != end.way for entry in asked)


def _common_start(one: Sequence[SequenceEntry], other: Sequence[SequenceEntry]) -> Tuple[int, int]:
    """Return the places from which both sequences hold the same; a ring has lost its first entries."""
    places = {(entry.op, entry.group, entry.number): place for place, entry in enumerate(other)}
    for place, entry in enumerate(one):
        found = places.get((entry.op, entry.group, entry.number))
        if found is not None:
            return place, found
    return 0, 0


def _compared_places(sides: Sequence[Sequence[SequenceEntry]], by_way: bool, apart: AbstractSet[str]) -> List[List[int]]:
    """Return the places of each side without calls of groups that one of both is not in, if the other side never makes the like in its own group."""
    lines = [{_label(entry, by_way)[:-1] for entry in side} for side in sides]
    kept: List[List[int]] = [[], []]
    for number, side in enumerate(sides):
        for place, entry in enumerate(side):
            if entry.group not in apart or _label(entry, by_way)[:-1] in lines[1 - number]:
                kept[number].append(place)
    return kept


def _label(entry: SequenceEntry, by_way: bool) -> _Label:
    way = entry.way if by_way else entry.way[-1:]
    how = entry.raised, entry.has_failed
    return entry.op, way, entry.size, entry.is_held_back, entry.side, how


def _after(labels: Sequence[_Label], context: Sequence[_Label], but: int) -> List[_Label]:
    """Return what comes after these entries, wherever else they are."""
    size = len(context)
    ends = (end for end in range(size, len(labels)) if end != but and labels[end - 1] == context[-1])
    return [labels[end] for end in ends if labels[end - size : end] == context]
