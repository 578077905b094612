"""Tells which ranks the others wait for, by the steps of their ledgers: those that come to the backward pass last, step after step.

In a data-parallel job a rank waits for the others in its backward pass, or in a call that it makes itself. What is left of its step is its own time.
A rank is late if its own time is longer than that of the others by more than these differ among themselves, in most of the steps, and if the others
wait about that much longer than it does: without that, it keeps nobody.
"""

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.read.steps import PARTS, StepTimes

FEW = 20
"""Fewer steps than this say nothing."""
_LEAST = 0.05  # Of a step: less is not worth a word.
_MOST_NUMBERS = 1 << 18  # Steps times ranks that are compared.
_SURE = 4.0  # Standard deviations above what chance would give.
_Columns = Dict[int, Tuple[int, ...]]


class LateRanks(NamedTuple):
    """The ranks that the others wait for; times are in nanoseconds, typical of a step."""

    ranks: List[int]
    steps: int  # How many steps were compared.
    last_in: int  # In how many of them one of these ranks was the last.
    behind: int
    took: int
    part: str  # One of PARTS, or "elsewhere": where they spend more time than the others.
    more: int  # How much more.
    usual: int  # What the others spend there.


def late(ranks: Mapping[int, StepTimes]) -> Optional[LateRanks]:
    """Return who is late among ranks that wait for each other; None if nobody is, or if there are too few steps."""
    common = _common(ranks)
    if common is None:
        return None
    # DistributedDataParallel's forward may wait as well: for the buffers of rank 0.
    return _late(common, ("backward", "waiting")) or _late(common, ("backward", "waiting", "forward"))


def waits(ranks: Mapping[int, StepTimes]) -> Dict[int, int]:
    """Return the time of a typical step that each rank spends in its backward pass and in collective calls."""
    common = _common(ranks)
    return {rank: _middle(_added(steps, ("backward", "waiting"))) for rank, steps in common.items()} if common else {}


def _common(ranks: Mapping[int, StepTimes]) -> Optional[Dict[int, StepTimes]]:
    """Return the steps that all ranks have."""
    if len(ranks) < 2:
        return None
    last = min(steps.last for steps in ranks.values())
    most = max(FEW, _MOST_NUMBERS // len(ranks))
    first = max(last - most + 1, *[steps.first for steps in ranks.values()])
    return {rank: _cut(steps, first, last) for rank, steps in ranks.items()} if last - first + 1 >= FEW else None


def _cut(steps: StepTimes, first: int, last: int) -> StepTimes:
    begin, end = first - steps.first, last - steps.first + 1
    return StepTimes(first, steps.took[begin:end], {name: times[begin:end] for name, times in steps.parts.items()}, steps.ended_ns)


def _late(ranks: Dict[int, StepTimes], waiting: Sequence[str]) -> Optional[LateRanks]:
    waited = {rank: _added(steps, waiting) for rank, steps in ranks.items()}
    own = {rank: tuple([took - wait for took, wait in zip(steps.took, waited[rank])]) for rank, steps in ranks.items()}
    middle = {rank: _middle(times) for rank, times in own.items()}
    order = sorted(middle, key=lambda rank: middle[rank])
    slow = _split(order, middle)
    rest = order[: len(order) - len(slow)]
    behind = middle[slow[0]] - middle[rest[-1]]
    took = max(_middle(steps.took) for steps in ranks.values())
    last_in = _times_last(own, set(slow))
    spread = middle[rest[-1]] - middle[rest[0]]
    keeps = _middle([_middle(waited[rank]) for rank in rest]) - _middle([_middle(waited[rank]) for rank in slow])
    typical = _middle([middle[rank] for rank in slow]) - _middle([middle[rank] for rank in rest])
    if behind <= max(spread, _LEAST * took) or keeps < typical / 2 or not _is_no_chance(last_in, len(own[slow[0]]), len(slow) / len(order)):
        return None
    return LateRanks(sorted(slow), len(own[slow[0]]), last_in, typical, took, *_where(ranks, slow, rest, waiting))


def _split(order: List[int], middle: Mapping[int, int]) -> List[int]:
    """Return the slowest ranks, at most half of all: those above the widest gap."""
    gaps = [(middle[order[-count]] - middle[order[-count - 1]], count) for count in range(1, len(order) // 2 + 1)]
    return order[-max(gaps, key=lambda gap: (gap[0], -gap[1]))[1] :]


def _times_last(own: _Columns, slow: "set[int]") -> int:
    """Return in how many steps the rank with the longest own time was one of these."""
    names = list(own)
    found = 0
    for times in zip(*own.values()):
        found += names[times.index(max(times))] in slow
    return found


def _is_no_chance(last_in: int, steps: int, chance: float) -> bool:
    """Tell whether they were last in most of the steps, and more often than if each rank were last as often as any other."""
    deviation = (chance * (1 - chance) / steps) ** 0.5
    return bool(last_in / steps > max(0.5, chance + _SURE * deviation))


def _where(ranks: Dict[int, StepTimes], slow: List[int], rest: List[int], waiting: Sequence[str]) -> Tuple[str, int, int]:
    """Return the part of a step in which the slow ranks spend most more than the others, how much more, and what the others spend."""
    names = [name for name in PARTS if name not in waiting]
    known = {rank: {name: _middle(steps.parts[name]) for name in names} for rank, steps in ranks.items()}
    for rank, steps in ranks.items():
        known[rank]["elsewhere"] = max(0, _middle([took - sum(parts) for took, *parts in zip(steps.took, *_parts(steps, [*names, *waiting]))]))
    usual = {name: _middle([known[rank][name] for rank in rest]) for name in [*names, "elsewhere"]}
    more = {name: _middle([known[rank][name] for rank in slow]) - usual[name] for name in usual}
    part = max(more, key=lambda name: more[name])
    return part, more[part], usual[part]


def _parts(steps: StepTimes, names: Sequence[str]) -> List[Tuple[int, ...]]:
    return [steps.parts[name] for name in names]


def _added(steps: StepTimes, names: Sequence[str]) -> Tuple[int, ...]:
    """Return the sum of some parts, step by step."""
    return tuple([sum(parts) for parts in zip(*_parts(steps, names))])


def _middle(values: Sequence[int]) -> int:
    """Return the median; of an even number the lower one."""
    return sorted(values)[(len(values) - 1) // 2]
