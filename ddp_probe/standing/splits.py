"""At which call the ranks part, and which side is to blame.

Two things part them: other calls at one number of a group, or a call that some wait in and others do not come to. The rank that has left the
sequence of calls that all make is to blame (shared/alignment.py). If there is none, the majority of the group decides, or both are named. Who waits
for a rank that waits itself is a consequence.
"""

from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

from ddp_probe.reading.rank_ledger import LedgerCall, made
from ddp_probe.reading.whole_ledger import Group, Record
from ddp_probe.shared import alignment
from ddp_probe.shared.alignment import Departure
from ddp_probe.shared.ledger_schema import PAIRED
from ddp_probe.standing.deciding import Deciding
from ddp_probe.standing.item_order import first_mixed_calls
from ddp_probe.standing.last_ways import of_departure
from ddp_probe.standing.other_models import other_models
from ddp_probe.standing.out_of_step import Mixed
from ddp_probe.standing.rank_standing import LedgerStanding, LedgerStandings
from ddp_probe.standing.sequence import (
    SequenceParting,
    UnlikeCalls,
    left_in_thread,
    parted_sequences,
    swapped_passes,
)
from ddp_probe.standing.stalls import BACKWARD, Stall, all_stalls, is_long

# Each kind of split belongs to one rule.
DIFFER, MISSING, LEFT, ALONE, PEER, CIRCLE = "differ", "missing", "left", "alone", "peer", "circle"
WORKING, HALTED, UNKNOWN, MIXED, DECIDED = "working", "halted", "unknown", "mixed", "decided"
_ONLY_MEETING = (DIFFER, MISSING, ALONE, UNKNOWN, MIXED)
"""The kinds that say where ranks wait, and not where they left the sequence before that."""
_SAME_SIZE = frozenset(
    "all_reduce all_reduce_coalesced broadcast reduce _all_gather_base all_gather_into_tensor all_gather_single _reduce_scatter_base "
    "reduce_scatter_tensor reduce_scatter_single gather_into_tensor gather_single".split()
)
_APART = 2.0  # Seconds by which ranks may be apart without being slow.


class Split(NamedTuple):
    """The call at which the ranks part. `here` wait, or make the usual call; `there` do not come, or make another; `blame` are the guilty."""

    kind: str
    group: Optional[Group]
    number: int
    here: Tuple[int, ...]
    there: Tuple[int, ...]
    blame: Tuple[int, ...]
    when: float
    calls: Tuple[Tuple[LedgerCall, Tuple[int, ...]], ...] = ()  # If the calls differ: each with its ranks, the most frequent first.
    unknown: Tuple[int, ...] = ()
    is_sure: bool = True
    what: str = ""  # What `here` wait in, if it is not a collective.
    branch: int = 0  # The line of the `if` that shows which rank is wrong.
    circle: Tuple["Split", ...] = ()  # If groups wait for each other: each wait, for ranks that are in the next wait.
    departure: Optional[Departure] = None  # The call at which the guilty rank left the sequence of calls that all make.
    deciding: Optional[Deciding] = None  # The statements that can have decided the departure.
    mixed: Optional[Mixed] = None  # If equal calls of lines that do not belong together met before.
    sequence: Optional[SequenceParting] = None  # The entry at which ranks left the sequence of calls and passes, which may be long before.

    @property
    def left(self) -> Optional[SequenceParting]:
        """Return where ranks left the sequence, if it is known which ranks have."""
        return self.sequence if self.sequence is not None and self.sequence.is_sure else None

    @property
    def decided(self) -> Optional[SequenceParting]:
        """Return the same if statements are known that can have decided it."""
        return self.left if self.left is not None and self.left.decision is not None else None


def split(standings: LedgerStandings, halted: Mapping[int, str] = {}) -> Optional[Split]:
    """Return where the ranks part first, by their ledgers; None if they do not. `halted` are ranks that do not run."""
    parted = differing(standings)
    mixed = out_of_step(standings, parted)
    if mixed is not None:
        return by_sequence(standings, mixed)
    found = narrowed(standings, parted) if parted is not None else halt(standings, halted) or stalled(standings)
    return by_sequence(standings, found) if found is not None else None


def by_sequence(standings: LedgerStandings, found: Split) -> Split:
    """Return a split with the entry at which ranks left the sequence before it; who left is to blame, and not who waits."""
    if found.kind not in (*_ONLY_MEETING, LEFT):
        return found
    left = parted_sequences(standings, _unlike(found))
    if found.kind == LEFT:
        return found._replace(sequence=left) if left is not None and left.is_sure else found
    return _left(found, left) if left is not None else found


def _unlike(found: Split) -> Optional[UnlikeCalls]:
    if found.group is None or found.kind != DIFFER:
        return None
    return UnlikeCalls(found.group.id, found.number, tuple(ranks for _, ranks in found.calls))


def _left(found: Split, left: SequenceParting) -> Split:
    blame = left.ranks if left.is_sure else found.blame or left.ranks
    is_told = found.kind != MIXED and (left.hint not in ("", "rank") or found.kind == UNKNOWN)
    return found._replace(kind=DECIDED if is_told else found.kind, blame=blame, sequence=left)


def of_sequence(standings: LedgerStandings) -> Optional[Split]:
    """Return where ranks left the sequence, of a run in which none waits any more because the backend has ended one."""
    left = parted_sequences(standings) or left_in_thread(standings)
    return _of_left(standings, left) if left is not None and left.is_sure else None


def of_swapped(standings: LedgerStandings) -> Optional[Split]:
    """Return where ranks that ended well passed models forward, or back, in another order."""
    left = swapped_passes(standings) or other_models(standings)
    return _of_left(standings, left) if left is not None else None


def _of_left(standings: LedgerStandings, left: SequenceParting) -> Split:
    when = min(standings.ranks[rank].moved() for rank in left.ranks)
    return Split(DECIDED, None, 0, left.others, left.ranks, left.ranks, when, sequence=left)


def out_of_step(standings: LedgerStandings, parted: Optional[Split] = None) -> Optional[Split]:
    """Return where equal calls met that do not belong together, unless ranks parted before that."""
    mixed = first_mixed_calls(standings)
    if mixed is None or not mixed.is_sure:
        return None
    usual, other = mixed.calls[0][1], mixed.calls[1][1]
    when = min(_entered(standings.ranks[rank], mixed.group.id, mixed.number) for rank in (usual[0], other[0]))
    if parted is not None and parted.when < when:
        return None
    branch = mixed.decision.line if mixed.decision is not None else 0
    return Split(MIXED, mixed.group, mixed.number, usual, other, mixed.blame, when, mixed.calls, branch=branch, mixed=mixed)


def differing(standings: LedgerStandings) -> Optional[Split]:
    """Return the first number at which ranks of a group made other calls."""
    return min(_differences(standings), key=lambda each: each.when, default=None)


def signature(call: Optional[LedgerCall], strict: bool = True) -> Optional[Tuple[object, ...]]:
    """Return what has to be the same on all ranks; None if it is not known."""
    if call is None or (call.tensors and not call.dtype):
        return None
    elements = call.elements if call.op in _SAME_SIZE or (not strict and not call.op.startswith("all_to_all")) else 0
    return call.op, elements, call.dtype, call.root, call.tensors if call.op.endswith("_coalesced") else 0


def _differences(standings: LedgerStandings) -> Iterator[Split]:
    """Yield the first number of each group at which ranks made other calls."""
    for name, (group, members) in standings.groups.items():
        classes = _alike(standings, name, members)
        if len(classes) < 2:  # all made the same calls
            continue
        for number in _numbers(name, classes):
            calls = _at(standings, name, number, classes)
            if calls:
                yield _differ(standings, group, number, calls)
                break


def _numbers(name: str, classes: List[Tuple[int, LedgerStanding, List[int]]]) -> Iterator[int]:
    """Yield each number that a ledger holds, in order. A file may claim any number: what lies between two of them is not walked through."""
    spans = sorted((first, standing.count(name)) for first, standing, _ in classes)
    reached = 0
    for first, last in spans:
        yield from range(max(first, reached), last + 1)
        reached = max(reached, last + 1)


def _alike(standings: LedgerStandings, name: str, members: Set[int]) -> List[Tuple[int, LedgerStanding, List[int]]]:
    """Return the ranks of a group by what their ledgers hold of it: the first number, one of the ranks, and all of them."""
    ranks_of: Dict[Tuple[int, bytes, str], List[int]] = {}
    for rank in sorted(members):
        calls = standings.ranks[rank].calls(name) if rank in standings.ranks else None
        if calls is not None and calls.numbers and calls.last is not None:
            ranks_of.setdefault((calls.first, calls.numbers.tobytes(), calls.last.state), []).append(rank)
    return [(key[0], standings.ranks[ranks[0]], ranks) for key, ranks in ranks_of.items()]


def _at(
    standings: LedgerStandings, name: str, number: int, classes: List[Tuple[int, LedgerStanding, List[int]]]
) -> List[Tuple[LedgerCall, Tuple[int, ...]]]:
    """Return the different calls at a number with their ranks, the most frequent first; an empty list if there is at most one."""
    sides: Dict[Tuple[object, ...], Tuple[LedgerCall, List[int]]] = {}
    stuck = any(_stuck(standings, standing, name, number) for _, standing, _ in classes)
    for _, standing, ranks in classes:
        calls = standing.calls(name)
        call = calls.call(number) if calls is not None else None
        key = signature(call, not stuck)
        if key is not None and call is not None:
            sides.setdefault(key, (call, []))[1].extend(ranks)
    if len(sides) < 2:  # no two calls to compare
        return []
    return [(call, tuple(sorted(ranks))) for call, ranks in sorted(sides.values(), key=lambda side: (-len(side[1]), side[1]))]


def _stuck(standings: LedgerStandings, standing: LedgerStanding, name: str, number: int) -> bool:
    """Tell whether a rank came to no end in a call: then sizes count that some backends let differ."""
    inside = standing.inside
    here = inside is not None and inside.group is not None and inside.group.id == name and inside.seq == number
    return here and (is_long(standings, standing) or (inside is not None and not inside.is_open))


def _differ(standings: LedgerStandings, group: Group, number: int, sides: List[Tuple[LedgerCall, Tuple[int, ...]]]) -> Split:
    usual = sides[0][1]
    others = tuple(sorted(rank for _, ranks in sides[1:] for rank in ranks))
    when = min(_entered(standings.ranks[rank], group.id, number) for rank in (usual[0], others[0]))
    blame = others if len(usual) * 2 > group.size else tuple(sorted((*usual, *others)))
    return Split(DIFFER, group, number, usual, others, blame, when, tuple(sides))


def record(standing: LedgerStanding, group: str, number: int) -> Optional[Record]:
    """Return the record of a call; for one that is not the last the ledger is read again."""
    calls = standing.calls(group)
    if calls is not None and calls.last is not None and calls.last.seq == number:
        return calls.last
    outer = (each for each in standing.records() if not each.is_inner and each.group is not None)
    return next((each for each in outer if each.group is not None and each.group.id == group and each.seq == number), None)


def _entered(standing: LedgerStanding, group: str, number: int) -> float:
    found = record(standing, group, number)
    return standing.wall(found.entered_ns) if found is not None else standing.since()


def halt(standings: LedgerStandings, there: Mapping[int, str]) -> Optional[Split]:
    """Return the ranks that do not run, if others wait: it does not matter what for."""
    waiting = [
        standing
        for rank, standing in standings.ranks.items()
        if rank not in there and standing.left is None and (standing.inside is not None or standing.in_backward)
    ]
    long = {standing.rank: standing for standing in waiting if is_long(standings, standing)}
    if not there or not long:
        return None
    first = min(long.values(), key=LedgerStanding.since)
    inside = first.inside
    here = {rank: standing for rank, standing in long.items() if (standing.inside is None) == (inside is None)}
    number = inside.seq if inside is not None else first.times(BACKWARD)
    stall = Stall(
        inside.group if inside is not None else None, number, here, sorted(there), [], len(standings.ranks), "" if inside is not None else BACKWARD
    )
    return _made(stall, HALTED, sorted(there), sorted(there))


def stalled(standings: LedgerStandings) -> Optional[Split]:
    """Return the call that some ranks wait in and others do not come to."""
    stalls = all_stalls(standings)
    if not stalls:
        return None
    departed = _departed(standings, stalls)
    if departed is not None:
        return departed
    stuck = {rank: stall for stall in stalls for rank in stall.here}
    free = [stall for stall in stalls if any(rank not in stuck for rank in stall.there)]
    if free:
        stall = max(free, key=lambda stall: (len(stall.here), -stall.when))
        return _judged(standings, stall, [rank for rank in stall.there if rank not in stuck])
    known = [stall for stall in stalls if stall.there and not stall.unknown]
    if not known or any(stall.unknown and not stall.there for stall in stalls):
        return _unknown(stalls)
    pairs = [stall for stall in known if stall.what in PAIRED]
    if pairs:
        return _unpaired(pairs)
    known.sort(key=lambda stall: (-len(stall.here), stall.when))
    first = known[0]
    if len(first.here) * 2 > first.size and len(first.there) < len(first.here):
        return _made(first, MISSING, first.there, first.there)
    around = _around(first, stuck)
    if len({stall.group.id for stall in around if stall.group is not None and not stall.what}) == len(around) > 1:
        waits = tuple(
            _made(stall, CIRCLE, [rank for rank in stall.there if rank in after.here], []) for stall, after in zip(around, around[1:] + around)
        )
        return _made(around[0], CIRCLE, around[0].there, [rank for wait in waits for rank in wait.here])._replace(circle=waits)
    return _circle(first, MISSING)


def _departed(standings: LedgerStandings, stalls: List[Stall]) -> Optional[Split]:
    """Return the wait for the one rank that has left the sequence of calls that all make, or that rank's wait if no rank waits for it alone."""
    waiting = {rank: standing for stall in stalls for rank, standing in stall.here.items()}
    free = [standings.ranks[rank] for stall in stalls for rank in stall.there if rank not in waiting]
    if any(standing.left is None for standing in free) or not any(is_long(standings, standing) for standing in waiting.values()):
        return None  # A rank that is in no call may still arrive.
    departure = _departure(standings, stalls)
    if departure is None:
        return None
    waited_for = [stall for stall in stalls if departure.rank in stall.there] or [stall for stall in stalls if departure.rank in stall.here]
    if not waited_for:
        return None
    stall = max(waited_for, key=lambda stall: (len(stall.here), -stall.when))
    kind = PEER if stall.what in PAIRED else MISSING if departure.rank in stall.there else ALONE
    found = _made(stall, kind, stall.there, [departure.rank])
    return found._replace(departure=departure, deciding=of_departure(standings, departure))


def _departure(standings: LedgerStandings, stalls: List[Stall]) -> Optional[Departure]:
    """Return the departure of one rank; of very many, those are compared that few wait for, or that wait with few."""
    rare = [rank for stall in sorted(stalls, key=lambda stall: len(stall.here)) for rank in (*stall.there, *stall.here)]
    chosen = list(dict.fromkeys(rank for rank in [*rare, *sorted(standings.ranks)] if rank not in standings.unknown))[: alignment.MOST_RANKS]
    calls = {rank: made(standings.ranks[rank].records()) for rank in sorted(chosen)}
    return alignment.departure({rank: aligned_calls for rank, aligned_calls in calls.items() if aligned_calls})


def narrowed(standings: LedgerStandings, parted: Split) -> Split:
    """Return the split with one guilty rank if only the sequence of calls shows which it is."""
    if len(parted.blame) < 2:
        return parted
    departure = _departure(standings, [])
    if departure is None or departure.rank not in parted.blame:
        return parted
    if departure.rank in parted.here:
        parted = parted._replace(here=parted.there, there=parted.here, calls=parted.calls[::-1])
    deciding = of_departure(standings, departure)
    return parted._replace(blame=(departure.rank,), departure=departure, deciding=deciding)


def _unpaired(pairs: List[Stall]) -> Split:
    """Blame the pair whose partner is in no such call itself; who waits for one of the two is a consequence. If there is none: all of the circle."""
    waiting = {rank: stall for stall in pairs for rank in stall.here}
    last = [stall for stall in pairs if not any(rank in waiting for rank in stall.there)]
    if last:
        return _circle(min(last, key=lambda stall: stall.when), PEER)
    around = _around(pairs[0], waiting)
    return _made(around[0], PEER, around[0].there, [rank for stall in around for rank in stall.here])


def _around(start: Stall, stuck: Dict[int, Stall]) -> List[Stall]:
    """Follow who waits for whom until that closes a circle, and return it; an empty list if it ends somewhere."""
    path: List[Stall] = []
    stall: Optional[Stall] = start
    while stall is not None and stall not in path:
        path.append(stall)
        stall = next((stuck[rank] for rank in stall.there if rank in stuck), None)
    return path[path.index(stall) :] if stall is not None else []


def _circle(stall: Stall, kind: str) -> Split:
    """Blame both: each waits for the other."""
    return _made(stall, kind, stall.there, [*stall.here, *stall.there])


def _unknown(stalls: List[Stall]) -> Split:
    stall = max(stalls, key=lambda stall: len(stall.here))
    return _made(stall, UNKNOWN, stall.there, [])


def _made(stall: Stall, kind: str, there: List[int], blame: List[int], is_sure: bool = True) -> Split:
    here, unknown = tuple(sorted(stall.here)), tuple(sorted(stall.unknown))
    return Split(kind, stall.group, stall.number, here, tuple(sorted(there)), tuple(sorted(set(blame))), stall.when, (), unknown, is_sure, stall.what)


def _judged(standings: LedgerStandings, stall: Stall, there: List[int]) -> Optional[Split]:
    """Say which side is to blame if the ranks that do not come are in no collective themselves."""
    missing = [standings.ranks[rank] for rank in there]
    left = [standing for standing in missing if standing.left is not None]
    sure = len(left) == len(missing) or any(is_long(standings, standing) for standing in stall.here.values())
    if not sure:
        running = any(standing.runs for standing in stall.here.values())
        return None if running else _made(stall, UNKNOWN, there, [], is_sure=False)
    many = len(stall.here) * 2 > stall.size
    if any(standing.is_joining for standing in missing):
        return _made(stall, UNKNOWN, there, [])
    if stall.unknown and not (many and len(there) < len(stall.here) and not any(standing.in_backward for standing in missing)):
        return _made(stall, UNKNOWN, there, [])
    if all(standing.is_working or _still_moves(standings, standing, stall) for standing in missing):
        return _made(stall, WORKING, there, there)
    if any(_may_come(standings, standing) for standing in missing):
        return None
    if stall.what in PAIRED:
        return _made(stall, LEFT if left else PEER, there, there)
    if len(there) > len(stall.here):
        return _made(stall, ALONE, there, list(stall.here), is_sure=len(left) == len(missing) or all(standing.in_backward for standing in missing))
    if left and len(left) == len(missing):
        return _made(stall, LEFT, there, there)
    return _made(stall, MISSING, there, there)


def _still_moves(standings: LedgerStandings, standing: LedgerStanding, stall: Stall) -> bool:
    """Tell whether a rank has gone on for most of the time since the others began to wait: batches of a validation, saves, calls in another group."""
    if standing.waited_out or (standing.phase is not None and not standing.phase.is_open):
        return False  # It moved when it gave up.
    moved = standing.moved()
    quiet = max(standing.until, *(standing.until for standing in stall.here.values())) - moved
    return standing.left is None and quiet < standings.patience and moved - stall.when > max(quiet, _APART)


def _may_come(standings: LedgerStandings, standing: LedgerStanding) -> bool:
    """Tell whether a rank that runs has moved so lately that its own watcher may not have looked where it stands."""
    quiet = standing.until - standing.moved()
    return standing.is_alive and standing.left is None and not standing.stands and quiet < standings.patience + min(1.0, standings.patience / 4)
