"""The memory of a rank grows as long as it trains: a leak."""

from itertools import chain
from typing import Iterator, List, NamedTuple, Optional

from ddp_probe.judging.memory import MIB, MemoryPoint, devices, event_of, of_device, of_process, site_of
from ddp_probe.judging.rule import WARNING, Finding, Rule, first_of, shown
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import at, clock, named, size

_STEPS = 3  # Until then a job builds up what it keeps: gradients, the state of its optimiser, the cache of its allocator.
_POINTS = 9
_DEVICE, _HOST = (64 * MIB, 0.1), (256 * MIB, 0.2)  # Growth of both kinds: in bytes, and as a part of what there was.
_THE_HOST = say("the host")
_STEADY = 0.4  # Part of the earlier rate that the later one has at least: what fills up grows ever more slowly.

RULE = Rule(
    id="DDP229",
    slug="memory-grows",
    cause="memory_grows",
    title="A rank's memory grows for as long as it trains.",
    symptom="The job runs out of memory after hours or epochs, at a step like any other.",
    evidence=(
        "device.state after the first steps: what tensors hold on a device, or what the process holds of the host's memory, is higher in each "
        "third of the lines than in all of the third before, and keeps growing at about the same rate. Memory that grows to a level and stays "
        "there does not count."
    ),
    remedy=(
        "Look for what is kept from step to step: a loss that is added up without .item() or detach(), outputs in a list, hooks that are "
        "registered "
        "again in each epoch, a cache in the data set. Compare torch's snapshots of two steps (torch.cuda.memory._snapshot()), "
        "or on the host tracemalloc's."
    ),
    restart="no",  # It grows again; a restart only begins from the bottom.
    needs=("device.state",),
    severity=WARNING,
)


class _Growth(NamedTuple):
    process: LoggedProcess
    what: str
    first: MemoryPoint
    last: MemoryPoint
    where: str


def check(run: Run) -> Iterator[Finding]:
    """Look at each device and at the host's memory of each rank."""
    ranks = [process for process in run.processes if process.rank is not None]
    grown = list(chain.from_iterable(map(_all, ranks)))
    for on_host in (False, True):
        chosen = [growth for growth in grown if (growth.what == _THE_HOST) is on_host]
        if chosen:
            yield _finding(chosen)


def _all(process: LoggedProcess) -> Iterator[_Growth]:
    for device in devices(process):
        growth = _growth(process, device, of_device(process, device), *_DEVICE)
        if growth is not None:
            yield growth
    host = _growth(process, _THE_HOST, of_process(process), *_HOST)
    if host is not None:
        yield host


def _growth(process: LoggedProcess, what: str, points: List[MemoryPoint], least: int, share: float) -> Optional[_Growth]:
    """Return the growth if each third of the points lies above the one before, and the rate holds."""
    points = _in_training(points)
    third = len(points) // 3
    if len(points) < _POINTS:
        return None
    early, middle, late = points[:third], points[third:-third], points[-third:]
    gaps = [min(p.held for p in after) - max(p.held for p in before) for before, after in ((early, middle), (middle, late))]
    more = late[-1].held - early[0].held
    if min(gaps) <= 0 or more < max(least, share * early[0].held) or late[-1].peak <= middle[-1].peak:
        return None
    if _rate(middle, late) < _STEADY * _rate(early, middle):
        return None
    return _Growth(process, what, early[0], late[-1], _where(process, points))


def _in_training(points: List[MemoryPoint]) -> List[MemoryPoint]:
    """Leave out what precedes the steps, and what follows the last one: there a job lets go of all that it has held."""
    last = next((point.step for point in reversed(points)), None)
    ended = next((number for number, point in enumerate(points) if point.step == last), -1)
    return [point for point in points[: ended + 1] if (point.step or 0) >= _STEPS]


def _rate(before: List[MemoryPoint], after: List[MemoryPoint]) -> float:
    """Return bytes a step between the middles of two thirds."""
    one, other = ((sum(p.held for p in part) / len(part), sum(p.step or 0 for p in part) / len(part)) for part in (before, after))
    return (other[0] - one[0]) / max(other[1] - one[1], 1.0)


def _where(process: LoggedProcess, points: List[MemoryPoint]) -> str:
    """Say whether it grows inside one kind of call, or between those: in the steps."""
    inside = 0
    where = say("in the steps")
    for before, after in zip(points, points[1:]):
        name = event_of(after.call)
        if before.call.begin.when == name + " begin" and after.call.begin.when == name + " end":
            inside += after.held - before.held
            where = say("in {event}{where}", event=name, where=at(site_of(process, after.call)))
    more = points[-1].held - points[0].held
    return where if 2 * inside > more else say("in the steps")


def _finding(grown: List[_Growth]) -> Finding:
    most = max(grown, key=lambda growth: growth.last.held - growth.first.held)
    ranks = sorted(set(ranks_of(growth.process for growth in grown)))
    more, steps = most.last.held - most.first.held, max((most.last.step or 0) - (most.first.step or 0), 1)
    verdict = say(
        "{who:capital} {who:holds|hold} more and more memory on {device}: "
        "rank {rank} had {held_first} at step {first_step} ({first_time}) and {held_last} at step {last_step} ({last_time}), "
        "which is {growth:.2f} MiB a step, {where}.",
        who=named(ranks),
        device=most.what if len({growth.what for growth in grown}) == 1 else say("their cards"),
        rank=most.process.rank,
        held_first=size(most.first.held),
        first_step=most.first.step or 0,
        first_time=clock(most.first.call.when),
        held_last=size(most.last.held),
        last_step=most.last.step or 0,
        last_time=clock(most.last.call.when),
        growth=more / steps / MIB,
        where=most.where,
    )
    evidence = []
    for growth in grown:
        for point in (growth.first, growth.last):
            who = named(ranks_of([growth.process]))
            text = say("{who} {who:holds|hold} {held}", who=who, held=size(point.held))
            evidence.append(shown(point.call, text))
    return RULE.found(
        ranks=ranks,
        verdict=verdict,
        evidence=first_of(evidence),
        when=most.first.call.when,
    )
