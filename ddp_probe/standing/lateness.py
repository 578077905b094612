"""Tells which ranks the others wait for, by the steps of their ledgers: those whose own time is longer, step after step.

In a data-parallel job a rank waits for the others in its backward pass, or in a call that it makes itself. What is left of its step is its own time.
A rank is late if its own time is longer than that of the others by more than these differ among themselves, if it is the last far more often than by
chance, and if the others wait about that much longer than it does: without that, it keeps nobody. No clock of one host is compared with another's.

Only ranks that do the same are compared: they make the same calls in a group, and no two of them send to each other, as the stages of a pipeline do.
"""

from typing import Collection, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.reading.steps import FEW, PARTS, StepTimes
from ddp_probe.reading.whole_ledger import CallSum, Group
from ddp_probe.shared.ledger_schema import ROOTED, ranks_of
from ddp_probe.wording.text import Text, say

ELSEWHERE = "elsewhere"
_WORDS = {
    "dataloader": say("waiting for the DataLoader"),
    "forward": say("the forward pass"),
    "backward": say("the backward pass"),
    "optimizer": say("the optimizer's step"),
    "saving": say("saving and loading checkpoints"),
    "evaluating": say("validation"),
    ELSEWHERE: say("code that the probe does not time"),
}
_LEAST = 0.05  # Share of a step: less is not worth mentioning.
_MINUTE = 60_000_000  # Microseconds.
_MOST_NUMBERS = 1 << 20  # StepTimes times ranks that are compared.
_OFTEN = 0.4  # Share of the steps: with noise, a rank that is late by two deviations is the last of eight in six of ten steps.
_SURE = 4.0  # Standard deviations above what chance would give.
_WAITING = (
    ("waiting",),
    ("backward", "waiting"),
    ("backward", "waiting", "forward"),  # DistributedDataParallel's forward may wait as well: for the buffers of rank 0.
    ("backward", "waiting", "forward", "optimizer", ELSEWHERE),  # With a card, the host waits wherever it needs a result.
)
"""The parts in which ranks may wait. Time in none of these is a rank's own; the first part that names a rank counts."""
_Columns = Dict[int, List[int]]


class StepMember(NamedTuple):
    """What the comparison needs of one rank."""

    steps: StepTimes = StepTimes()
    sums: Sequence[CallSum] = ()
    groups: Collection[str] = ()
    peers: Collection[int] = ()  # Ranks that it sends to, or receives from.


class LateRanks(NamedTuple):
    """The ranks that the others wait for; times are in microseconds, typical of a step."""

    ranks: List[int]
    others: List[int]
    steps: int  # How many steps were compared.
    last_in: int  # The number of steps in which one of these ranks was last.
    behind: int
    took: int
    waited: int  # How much longer the others wait than these.
    part: str  # One of PARTS, or "elsewhere": where they spend more time than the others.
    more: int  # How much more.
    usual: int  # What the others spend there.

    @property
    def part_in_words(self) -> Text:
        """Return the part as a sentence names it."""
        return _WORDS[self.part]

    @property
    def reason(self) -> Text:
        """Say how late they are, as the end of a sentence that begins with them."""
        return say(
            "is late: last in {last} of {steps} steps, by {time}, spent in {part}; "
            "{others} {others:other waits|others wait} {percent} % of each step",
            last=self.last_in,
            steps=self.steps,
            time=milliseconds(self.behind),
            part=self.part_in_words,
            others=len(self.others),
            percent=round(100 * self.waited / max(self.took, 1)),
        )


class Waited(NamedTuple):
    """The part of some time in which a rank has waited longer than the rank that waits least."""

    share: float
    seconds: float  # The seconds compared: a minute, or less if the kept steps do not reach back that far.


def milliseconds(micros: int) -> Text:
    """Return a time as a person reads it."""
    if micros >= 10**6:
        return say("{seconds:.3g} s", seconds=micros / 1e6)
    return say("{milliseconds:.3g} ms", milliseconds=micros / 1e3)


def whole_host(hosts: Mapping[int, str], late_ranks: LateRanks) -> str:
    """Return the name of the host whose ranks these are, all of them; empty if they are not all ranks of one of several hosts."""
    ranks: Dict[str, List[int]] = {}
    for rank, host in hosts.items():
        ranks.setdefault(host, []).append(rank)
    return next((host for host, those in ranks.items() if len(ranks) > 1 and host and len(those) > 1 and sorted(those) == late_ranks.ranks), "")


def member(steps: StepTimes, sums: Sequence[CallSum], groups: Collection[str], pairs: Collection[Tuple[str, int, bool]]) -> StepMember:
    """Return what is known of a rank; stages of a pipeline may also talk by broadcasts in groups of two."""
    within = [call_sum.group for call_sum in sums if call_sum.group is not None and call_sum.group.size == 2 and call_sum.op in ROOTED]
    is_small = within and max(call_sum.group.size for call_sum in sums if call_sum.group is not None) > 2
    twos = [rank for group in within for rank in _two(group)] if is_small else []
    return StepMember(steps, sums, groups, sorted({*(peer for _, peer, _ in pairs), *twos}))


def _two(group: Group) -> List[int]:
    try:
        return ranks_of(group.ranks)[:2]
    except ValueError:  # A text that was torn.
        return []


def late(members: Mapping[int, StepMember]) -> Optional[LateRanks]:
    """Return which ranks are late; None if none is, or if there are too few steps."""
    late_ranks = [each for ranks in comparable(members) for each in [_late_of({rank: members[rank].steps for rank in ranks})] if each is not None]
    if not late_ranks:
        return None
    worst = max(late_ranks, key=lambda each: each.behind)
    ranks = {rank for each in late_ranks if each.part == worst.part for rank in each.ranks}
    others = {rank for each in late_ranks for rank in each.others} - ranks
    return worst._replace(ranks=sorted(ranks), others=sorted(others))


def comparable(members: Mapping[int, StepMember]) -> Iterator[List[int]]:
    """Yield sets of ranks that do the same, the largest first; none is a part of another one."""
    groups: Dict[str, List[int]] = {}
    for rank, member in members.items():
        for name in member.groups:
            groups.setdefault(name, []).append(rank)
    calls = {rank: _calls(member.sums) for rank, member in members.items()}
    pipelines = _connected(members)
    sets: List[FrozenSet[int]] = []
    for name, ranks in sorted(groups.items(), key=lambda group: -len(group[1])):
        if len(ranks) < 2 or any(kept.issuperset(ranks) for kept in sets):
            continue
        if len({pipelines.get(rank, rank) for rank in ranks}) == len(ranks) and _same([calls[rank].get(name, {}) for rank in ranks]):
            sets.append(frozenset(ranks))
            yield ranks


def _calls(sums: Sequence[CallSum]) -> Dict[str, Dict[Tuple[str, object], int]]:
    """Return how often each line calls a collective, by the group."""
    counts: Dict[str, Dict[Tuple[str, object], int]] = {}
    for call_sum in sums:
        if call_sum.group is not None:
            counts.setdefault(call_sum.group.id, {})[(call_sum.op, call_sum.site)] = call_sum.calls
    return counts


def _same(calls: Sequence[Mapping[Tuple[str, object], int]]) -> bool:
    """Tell whether ranks make the same calls, but for those that one has made and another will make in a moment."""
    first = calls[0]
    return all(
        2 * min(call.get(key, 0), first.get(key, 0)) + FEW > max(call.get(key, 0), first.get(key, 0)) for call in calls for key in {*call, *first}
    )


def _connected(members: Mapping[int, StepMember]) -> Dict[int, int]:
    """Return, for each rank that sends or receives, one rank that stands for all that it is connected with."""
    stands: Dict[int, int] = {}

    def root(rank: int) -> int:
        while stands.setdefault(rank, rank) != rank:
            stands[rank] = rank = stands[stands[rank]]
        return rank

    for rank, member in members.items():
        for peer in member.peers:
            stands[root(rank)] = root(peer)
    return {rank: root(rank) for rank in list(stands)}


def waits(members: Mapping[int, StepMember], now: Mapping[int, int] = {}) -> Dict[int, Waited]:
    """Return how long each rank has waited in the last minute, of those that do the same; without a time in `now`, up to its latest step.

    `now` is on the monotonic clock of the rank's host, in nanoseconds. A step that has not ended yet is not counted.
    """
    waits_of: Dict[int, Waited] = {}
    for ranks in comparable(members):
        common = _common({rank: members[rank].steps for rank in ranks})
        if common is not None:
            waited = {rank: steps.added(("backward", "waiting")) for rank, steps in common.items()}
            least = [min(times) for times in zip(*waited.values())]
            for rank, steps in common.items():
                since = max(0, now.get(rank, steps.ended_ns) - steps.ended_ns) // 1000
                wait = _waited(steps, waited[rank], least, _MINUTE - since)
                waits_of.update({rank: wait} if wait is not None else {})
    return waits_of


def _waited(steps: StepTimes, waited: Sequence[int], least: Sequence[int], most: int) -> Optional[Waited]:
    """Add up the latest steps of this many microseconds; of a step that began before that, a part."""
    took, total = 0, 0.0
    for whole, wait, always in zip(steps.took[::-1], waited[::-1], least[::-1]):
        if took >= most:
            break
        within = min(whole, most - took)
        took, total = took + within, total + (wait - always) * within / max(whole, 1)
    return Waited(min(1.0, total / took), took / 1e6) if took else None


def _common(ranks: Mapping[int, StepTimes]) -> Optional[Dict[int, StepTimes]]:
    """Return the steps that all ranks have; None if these are few, or not the same on all of them."""
    if len(ranks) < 2 or not all(steps.numbers for steps in ranks.values()):
        return None
    first, last = max(steps.numbers[0] for steps in ranks.values()), min(steps.numbers[-1] for steps in ranks.values())
    most = max(FEW, _MOST_NUMBERS // len(ranks))
    cut = {rank: steps.cut(first, last).latest(most) for rank, steps in ranks.items()}
    numbers = next(iter(cut.values())).numbers
    return cut if len(numbers) >= FEW and all(steps.numbers == numbers for steps in cut.values()) else None


def _late_of(ranks: Mapping[int, StepTimes]) -> Optional[LateRanks]:
    """Return who is late among ranks that wait for each other."""
    common = _common(ranks)
    if common is None:
        return None
    return next((late_ranks for waiting in _WAITING for late_ranks in [_late(common, waiting)] if late_ranks is not None), None)


def _late(ranks: Dict[int, StepTimes], waiting: Sequence[str]) -> Optional[LateRanks]:
    parts = [name for name in (*PARTS, ELSEWHERE) if name not in waiting]
    own_times = {rank: _own_times(steps, parts, waiting) for rank, steps in ranks.items()}
    middle = {rank: _middle(times) for rank, times in own_times.items()}
    order = sorted(middle, key=lambda rank: middle[rank])
    slow = _split(order, middle)
    rest = order[: len(order) - len(slow)]
    behind = middle[slow[0]] - middle[rest[-1]]
    took = max(_middle(steps.took) for steps in ranks.values())
    if behind <= max(middle[rest[-1]] - middle[rest[0]], _LEAST * took):
        return None
    last_in, count = _times_last(own_times, set(slow)), len(own_times[slow[0]])
    kept = {rank: _middle(steps.took) - middle[rank] for rank, steps in ranks.items()}
    waited = _of(kept, rest) - _of(kept, slow)
    typical = _of(middle, slow) - _of(middle, rest)
    if waited < typical / 2 or not _is_no_chance(last_in, count, len(slow) / len(order)):
        return None
    return LateRanks(sorted(slow), sorted(rest), count, last_in, typical, took, waited, *_where(ranks, parts, slow, rest))


def _own_times(steps: StepTimes, parts: Sequence[str], waiting: Sequence[str]) -> List[int]:
    if ELSEWHERE not in parts:
        return steps.added(parts)
    return [took - waited for took, waited in zip(steps.took, steps.added(waiting))]


def _split(order: List[int], middle: Mapping[int, int]) -> List[int]:
    """Return the slowest ranks, at most half of all: those above the widest gap."""
    gaps = [(middle[order[-count]] - middle[order[-count - 1]], count) for count in range(1, len(order) // 2 + 1)]
    return order[-max(gaps, key=lambda gap: (gap[0], -gap[1]))[1] :]


def _times_last(own_times: _Columns, slow: "set[int]") -> int:
    """Return in how many steps the rank with the longest own time was one of these."""
    names = list(own_times)
    return sum([names[times.index(max(times))] in slow for times in zip(*own_times.values())])


def _is_no_chance(last_in: int, steps: int, chance: float) -> bool:
    """Tell whether they were last often, and more often than if each rank were last as often as any other."""
    deviation = (chance * (1 - chance) / steps) ** 0.5
    return bool(last_in / steps > max(_OFTEN, chance + _SURE * deviation))


def _where(ranks: Mapping[int, StepTimes], parts: Sequence[str], slow: List[int], rest: List[int]) -> Tuple[str, int, int]:
    """Return the part of a step in which the slow ranks spend most more than the others, how much more, and what the others spend."""
    spent = {}
    for name in parts:
        middle = {rank: _middle(steps.elsewhere() if name == ELSEWHERE else steps.parts[name]) for rank, steps in ranks.items()}
        spent[name] = _of(middle, slow) - _of(middle, rest), _of(middle, rest)
    part = max(spent, key=lambda name: spent[name][0])
    return (part, *spent[part])


def _of(middle: Mapping[int, int], ranks: Sequence[int]) -> int:
    return _middle([middle[rank] for rank in ranks])


def _middle(values: Sequence[int]) -> int:
    """Return the median; the lower one if their number is even."""
    return sorted(values)[(len(values) - 1) // 2]
