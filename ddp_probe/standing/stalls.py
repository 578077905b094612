"""Who waits for whom, by the ledgers: each call that some ranks are in and others have not come to. Who is to blame is asked in splits.py."""

from collections import Counter
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ddp_probe.reading.whole_ledger import Group
from ddp_probe.shared.ledger_schema import ABOUT_GROUPS, BATCH, OPERATIONS, PAIRED, SENDS
from ddp_probe.standing.rank_standing import LedgerStanding, LedgerStandings

BACKWARD, FORWARD, WRAP = "backward", "forward", "wrap"
CALLS_ABOUT_GROUPS = frozenset(code.name for code in OPERATIONS if ABOUT_GROUPS <= code.code < BATCH)
PASSES = {BACKWARD: "backward", FORWARD: "DDP's forward"}


class Stall(NamedTuple):
    """One such call: `here` wait in it, `there` have not come; nothing shows whether `unknown` have."""

    group: Optional[Group]
    number: int
    here: Dict[int, LedgerStanding]
    there: List[int]
    unknown: List[int]
    size: int
    what: str = ""

    @property
    def when(self) -> float:
        """Return when the first of them entered it."""
        return min(standing.since() for standing in self.here.values())


def all_stalls(standings: LedgerStandings) -> List[Stall]:
    """Return the calls that some ranks wait in and others do not come to: collectives, point-to-point calls, the passes of DDP."""
    calls = [*_in_collectives(standings), *_in_calls_about_groups(standings), *_in_pairs(standings)]
    stalls = [*calls, *_in_pass(standings, BACKWARD), *_in_pass(standings, FORWARD)]
    return [stall for stall in stalls if stall.there or stall.unknown]


def is_long(standings: LedgerStandings, standing: LedgerStanding) -> bool:
    """Tell whether a rank has waited longer than a healthy one waits; time in which it was paused does not count."""
    return standing.waited_out or min(standing.lasted(), standing.until - standing.resumed) >= standings.patience


def _in_collectives(standings: LedgerStandings) -> Iterator[Stall]:
    waiting: Dict[str, Dict[int, LedgerStanding]] = {}
    for rank, standing in standings.ranks.items():
        inside = standing.inside
        if inside is None or inside.group is None or standing.left is not None:
            continue
        if inside.op not in PAIRED and inside.op not in CALLS_ABOUT_GROUPS:
            waiting.setdefault(inside.group.id, {})[rank] = standing
    for name, (group, members) in standings.groups.items():
        inside_it = waiting.get(name) or _issued(standings, name, members)
        for number in sorted({_number(standing, name) for standing in inside_it.values()}):
            here = {rank: standing for rank, standing in inside_it.items() if _number(standing, name) == number}
            unknown = [rank for rank in members & standings.unknown if rank not in here and not _came(standings, rank, name, number)]
            there = [rank for rank in members - standings.unknown - set(here) if standings.ranks[rank].count(name) < number]
            if there or unknown:
                yield Stall(group, number, here, sorted(there), sorted(unknown), group.size)
                break


def _in_calls_about_groups(standings: LedgerStandings) -> Iterator[Stall]:
    """Yield the first call, such as new_group, that some ranks wait in and others have not made.

    Such calls are counted apart from the collectives of a group.
    """
    waiting: Dict[Tuple[int, str], Dict[int, LedgerStanding]] = {}
    for rank, standing in standings.ranks.items():
        inside = standing.inside
        if inside is None or inside.group is None or standing.left is not None:
            continue
        if inside.op in CALLS_ABOUT_GROUPS:
            waiting.setdefault((inside.seq, inside.group.id), {})[rank] = standing
    for (number, name), here in sorted(waiting.items()):
        group, members = standings.groups[name]
        absent = members - set(here)
        unknown = sorted(absent & standings.unknown)
        visible = sorted(absent - standings.unknown)
        there = [rank for rank in visible if not _made_groups(standings.ranks[rank], number)]
        if there or unknown:
            yield Stall(group, number, here, there, unknown, len(members))
            break


def _made_groups(standing: LedgerStanding, number: int) -> bool:
    """Tell whether a rank has made this call, or may have before its ring of calls begins."""
    records = standing.records()
    numbers = [record.seq for record in records if record.op in CALLS_ABOUT_GROUPS]
    if not numbers:
        return bool(records) and records[0].number > 1
    return max(numbers) >= number


def _number(standing: LedgerStanding, group: str) -> int:
    inside = standing.inside
    return inside.seq if inside is not None and inside.group is not None and inside.group.id == group else standing.count(group)


def _came(standings: LedgerStandings, rank: int, group: str, number: int) -> bool:
    return rank in standings.ranks and standings.ranks[rank].count(group) >= number


def _issued(standings: LedgerStandings, name: str, members: Set[int]) -> Dict[int, LedgerStanding]:
    """Return the ranks that have queued a call on a device, on which it may hang, and have been idle since."""
    issuers = {}
    for rank in members:
        standing = standings.ranks.get(rank)
        calls = standing.calls(name) if standing is not None else None
        if standing is None or standing.inside is not None or standing.left is not None or calls is None or calls.last is None:
            continue
        quiet = standing.until - standing.moved()
        if calls.last.device not in ("", "cpu") and quiet >= standings.patience and not standing.is_working:
            issuers[rank] = standing
    ahead = max((standing.count(name) for standing in issuers.values()), default=0)
    return {rank: standing for rank, standing in issuers.items() if standing.count(name) == ahead}


def _in_pairs(standings: LedgerStandings) -> Iterator[Stall]:
    """Yield the point-to-point calls whose partner has not made the other half."""
    for rank, standing in standings.ranks.items():
        inside = standing.inside
        if inside is None or inside.op not in PAIRED or inside.group is None or inside.peer < 0 or standing.left is not None:
            continue
        peer = standings.ranks.get(inside.peer)
        made = peer.ledger.pairs.get((inside.group.id, rank, inside.op not in SENDS), 0) if peer is not None else 0
        if made >= inside.seq:
            continue
        unknown = [inside.peer] if inside.peer in standings.unknown or peer is None else []
        there = [] if unknown else [inside.peer]
        yield Stall(inside.group, inside.seq, {rank: standing}, there, unknown, 2, inside.op)


def _in_pass(standings: LedgerStandings, name: str) -> Iterator[Stall]:
    """Yield the pass in which ranks wait for others. No record is made in C++: in forward DDP sends the buffers of rank 0, in backward it reduces."""
    here = {rank: standing for rank, standing in standings.ranks.items() if standing.is_in(name) and is_long(standings, standing)}
    if not here:
        return
    number = Counter(standing.times(name) for standing in here.values()).most_common(1)[0][0]
    here = {rank: standing for rank, standing in here.items() if standing.times(name) == number}
    there = [
        rank
        for rank, standing in standings.ranks.items()
        if rank not in standings.unknown and not standing.is_in(name) and standing.times(name) < number
    ]
    unknown = sorted(standings.unknown - set(here))
    if there or unknown:
        yield Stall(None, number, here, sorted(there), unknown, len(set(standings.ranks) | standings.unknown), name)
