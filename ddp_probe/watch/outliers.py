"""Which ranks stand out: by the majority of their group, never by one rank's word; only once the others have waited for a while."""

from collections import Counter
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.watch import _differences
from ddp_probe.watch.position import ELSEWHERE, GONE, OFF, OVER, RUNNING, STOPPED, Place, Position

PATIENCE = 3.0
"""Seconds that a majority must have waited before others stand out: a rank may always be a moment behind."""

_BACKWARD = "backward"


class _Wait(NamedTuple):
    """The call that most of a group's waiting ranks are in."""

    number: int
    op: str
    ranks: List[int]


def reasons(positions: Sequence[Position]) -> Dict[int, str]:
    """Return why each rank that stands out does so."""
    positions = [each for each in positions if each.state != OFF]  # What such a rank does is not known any more.
    found = _not_running(positions)
    groups = {name: [each for each in positions if name in each.places] for name in sorted({name for each in positions for name in each.places})}
    told = [_differences.unlike(name, members, PATIENCE) for name, members in groups.items()]
    if not any(told):
        asked = [_in_group(name, members) for name, members in groups.items()]
        pairs = {} if any(sure for sure, _ in asked) else _in_pairs(positions)
        told = [sure for sure, _ in asked] + ([pairs] if pairs else [rest for _, rest in asked if not any(sure for sure, _ in asked)])
    for rank, why in ((rank, why) for one in told for rank, why in one.items()):
        found.setdefault(rank, why)
    for rank, why in ({} if found else _in_backward(positions)).items():
        found.setdefault(rank, why)
    return found


def _not_running(positions: Sequence[Position]) -> Dict[int, str]:
    """Ranks that do not run while others do."""
    if not any(each.state in (RUNNING, ELSEWHERE) for each in positions):
        return {}
    return {each.rank: _process(each) for each in positions if each.state in (STOPPED, *OVER)}


def _process(position: Position) -> str:
    if position.state == STOPPED:
        return "is stopped, by a signal such as SIGSTOP or by a debugger"
    return "is gone without an end line: killed, or crashed" if position.state == GONE else "has %s while others run" % position.state


def _in_group(group: str, members: Sequence[Position]) -> Tuple[Dict[int, str], Dict[int, str]]:
    """Return the ranks that no other one keeps, and those that wait in another call: they may be kept by the first ones."""
    wait = _majority(group, members)
    if wait is None:
        return {}, {}
    elsewhere = [each for each in members if each.rank not in wait.ranks]
    if len(elsewhere) > len(wait.ranks) and not any(each.waits for each in elsewhere):
        who = [each for each in members if each.rank in wait.ranks]
        return {each.rank: "is in %s, and most of its group is not" % _call(each.places[group]) for each in who}, {}
    found = {each.rank: _other(each.places[group], wait) for each in elsewhere}
    found = {rank: why for rank, why in found.items() if why}
    is_half = 2 * len(wait.ranks) == len(members) == 2 * len(found)
    if is_half and all(_is_held_in_backward(each) for each in elsewhere):  # Nothing tells which half is wrong.
        return {**found, **dict.fromkeys(wait.ranks, "is in %s %d, not in %s" % (wait.op, wait.number, _backward_of(elsewhere)))}, {}
    if is_half and all(each.places[group].waits for each in elsewhere):
        ours = next(each.places[group] for each in elsewhere)
        other = _Wait(ours.number, ours.op, [each.rank for each in elsewhere])
        found.update({each.rank: _other(each.places[group], other) for each in members if each.rank in wait.ranks})
    kept = {each.rank for each in members if each.waits}
    return {rank: why for rank, why in found.items() if rank not in kept}, {rank: why for rank, why in found.items() if rank in kept}


def _in_pairs(positions: Sequence[Position]) -> Dict[int, str]:
    """Ranks in a send or a recv whose other half is not made, with their peers; if each of the peers is in one too, all of them."""
    waiting = {each.rank: each for each in positions if each.waits and each.peer >= 0 and each.seconds >= PATIENCE}
    last = [each for each in waiting.values() if each.peer not in waiting] or list(waiting.values())
    found = {each.rank: "is in %s %d with rank %d, which does not make the other half" % (each.op, each.number, each.peer) for each in last}
    for each in last:
        found.setdefault(each.peer, "does not make the other half of %s %d of rank %d" % (each.op, each.number, each.rank))
    return found


def _majority(group: str, members: Sequence[Position]) -> Optional[_Wait]:
    """Return the call that most of the waiting ranks have been in for long enough; of two as frequent, the earlier one."""
    waiting = [each for each in members if each.places[group].waits]
    if not waiting:
        return None
    counts: Counter[Tuple[int, str]] = Counter((each.places[group].number, each.places[group].op) for each in waiting)
    (number, op), _ = min(counts.items(), key=lambda item: (-item[1], item[0]))
    those = [each for each in waiting if each.places[group][:2] == (number, op)]
    return _Wait(number, op, [each.rank for each in those]) if min(each.seconds for each in those) >= PATIENCE else None


def _other(place: Place, wait: _Wait) -> str:
    """Say how a rank's place in the group differs from the majority's; empty if it does not."""
    many = "%d rank%s" % (len(wait.ranks), " waits" if len(wait.ranks) == 1 else "s wait")
    there = "%s %d, in which %s" % (wait.op, wait.number, many)
    if place.waits and place.number == wait.number:
        return "is in %s, not in %s" % (_call(place), there)
    if place.waits:
        return "is in %s, %s %s" % (_call(place), "behind" if place.number < wait.number else "ahead of", there)
    if place.reached < wait.number:
        return "is not in %s" % there
    return ""


def _call(place: Place) -> str:
    return "%s %d" % (place.op, place.number)


def _in_backward(positions: Sequence[Position]) -> Dict[int, str]:
    """Ranks that are not in the backward pass in which most ranks have been for long: DDP reduces there, unseen by Python."""
    inside = [each for each in positions if each.phase == _BACKWARD and not each.waits]
    if 2 * len(inside) < len(positions) or len(inside) == len(positions) or not all(map(_is_held_in_backward, inside)):
        return {}
    return {each.rank: "is not in %s" % _backward_of(inside) for each in positions if each not in inside}


def _is_held_in_backward(position: Position) -> bool:
    return position.phase == _BACKWARD and not position.waits and position.seconds >= PATIENCE


def _backward_of(inside: Sequence[Position]) -> str:
    """Name the backward pass that these ranks are in."""
    step = Counter(each.step for each in inside).most_common(1)[0][0]
    return "backward of step %d, in which %d rank%s" % (step, len(inside), " is" if len(inside) == 1 else "s are")
