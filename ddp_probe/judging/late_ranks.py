"""The ranks that the others wait for, step after step, and how long ranks wait at which line, by the sums of the ledgers."""

from typing import Dict, FrozenSet, Iterator, NamedTuple, Optional, Tuple

from ddp_probe.judging.facts import fact
from ddp_probe.judging.ledgers import standings_of
from ddp_probe.reading.model import Run
from ddp_probe.reading.steps import FEW
from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.shared.schema import Site
from ddp_probe.standing import lateness
from ddp_probe.standing.lateness import LateRanks, StepMember, milliseconds
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, named, place, quoted

_SIGNED, _HALF = 1 << 64, 1 << 63


class WaitSite(NamedTuple):
    """A line at which ranks call a collective of a group."""

    op: str
    group: str
    site: Optional[LedgerSite]

    def where(self) -> Text:
        """Return the operation and the line."""
        if self.site is None:
            return say("{call}", call=self.op)
        line = Site(self.site.file, self.site.line, self.site.function)
        return say("{call} at {where}", call=self.op, where=place(line))


class WaitTime(NamedTuple):
    """The time that one rank spent there, in seconds."""

    calls: int
    inside: float
    longest: float


@fact
def late(run: Run) -> Optional[LateRanks]:
    """Return the ranks that the others wait for."""
    return lateness.late(members(run))


def members(run: Run) -> Dict[int, StepMember]:
    """Return what is compared of each rank."""
    return {
        rank: lateness.member(standing.ledger.steps, standing.ledger.sums, standing.ledger.groups, standing.ledger.pairs)
        for rank, standing in standings_of(run).ranks.items()
    }


def shares(run: Run) -> Dict[int, float]:
    """Return which part of its latest steps each rank waits for the slowest."""
    return {rank: waited.share for rank, waited in lateness.waits(members(run)).items()}


def host(run: Run, late_ranks: LateRanks) -> str:
    """Return the name of the host whose ranks these are, all of them; empty if they are not all ranks of one of several hosts."""
    return lateness.whole_host({rank: process.host for rank, process in run.ranks.items()}, late_ranks)


def who(run: Run, late_ranks: LateRanks) -> Text:
    """Name the late ranks with their host, or the host whose ranks they are."""
    whole = host(run, late_ranks)
    if whole:
        return say("host {host} ({who})", host=quoted(whole), who=named(late_ranks.ranks))
    hosts = sorted({run.ranks[rank].host for rank in late_ranks.ranks if rank in run.ranks} - {""})
    if not 0 < len(hosts) <= 2:
        return named(late_ranks.ranks)
    return say("{who} on {hosts}", who=named(late_ranks.ranks), hosts=listed([quoted(name) for name in hosts]))


def sites(run: Run) -> Dict[WaitSite, Dict[int, WaitTime]]:
    """Return what each rank has spent in the collectives of each line, that with most time first."""
    found: Dict[WaitSite, Dict[int, WaitTime]] = {}
    for rank, standing in standings_of(run).ranks.items():
        for call_sum in standing.ledger.sums:
            if call_sum.group is not None:
                line = WaitSite(call_sum.op, call_sum.group.id, call_sum.site)
                found.setdefault(line, {})[rank] = WaitTime(call_sum.calls, call_sum.inside_ns / 1e9, call_sum.longest_ns / 1e9)
    return dict(sorted(found.items(), key=lambda item: -sum(time.inside for time in item[1].values())))


def by_sums(run: Run, late_ranks: LateRanks) -> Iterator[Tuple[WaitSite, int, float]]:
    """Yield the lines that the late ranks reached last over the whole run: how often all called it, and by how many seconds on average.

    The sums of the times at which the calls began are compared on the common clock, and only if all ranks have made as many calls.
    """
    entered: Dict[WaitSite, Dict[int, Tuple[int, int]]] = {}
    for rank in (*late_ranks.ranks, *late_ranks.others):
        standing = standings_of(run).ranks[rank]
        base = int((standing.ledger.base + standing.process.offset) * 1e9)
        for call_sum in standing.ledger.sums:
            if call_sum.group is not None and call_sum.calls >= FEW:
                entered.setdefault(WaitSite(call_sum.op, call_sum.group.id, call_sum.site), {})[rank] = (
                    call_sum.calls,
                    call_sum.entered_ns + call_sum.calls * base,
                )
    slow, rest = frozenset(late_ranks.ranks), frozenset(late_ranks.others)
    for line, ranks in entered.items():
        behind = _behind(ranks, slow, rest)
        if behind > 0:
            yield line, next(iter(ranks.values()))[0], behind


def _behind(ranks: Dict[int, Tuple[int, int]], slow: FrozenSet[int], rest: FrozenSet[int]) -> float:
    """Return by how many seconds, on average, the first late rank came after the last of the others; 0 if unknown."""
    if set(ranks) != slow | rest or len({calls for calls, _ in ranks.values()}) != 1:
        return 0.0
    calls, first = next(iter(ranks.values()))
    since: Dict[int, int] = {rank: (total - first + _HALF) % _SIGNED - _HALF for rank, (_, total) in ranks.items()}
    return (min(since[rank] for rank in slow) - max(since[rank] for rank in rest)) / calls / 1e9


def waited(run: Run) -> Dict[int, str]:
    """Return how much longer each rank waits in a typical step than the late ranks; nothing if none is late."""
    late_ranks = late(run)
    if late_ranks is None:
        return {}
    text = say("{time} a step", time=milliseconds(late_ranks.waited))
    return {**dict.fromkeys(late_ranks.others, text), **dict.fromkeys(late_ranks.ranks, say("is late"))}
