"""Ranks whose call at one number of a group is another one than that of most ranks: another operation, root, size or data type."""

from typing import Dict, List, NamedTuple, Sequence

from ddp_probe.read.ledger import Record
from ddp_probe.watch.position import Position

_OWN_SIZES = ("all_to_all", "all_to_all_single")  # Each rank may have other sizes.


class CallShape(NamedTuple):
    """What all ranks of a group have to have in common at one number."""

    op: str
    root: int
    elements: int
    dtype: str


def unlike(group: str, members: Sequence[Position], patience: float) -> Dict[int, str]:
    """Return why each rank that makes another call than most does so, at the first number at which a rank waits; all, if no call has a majority."""
    waiting = {each.places[group].number for each in members if each.places[group].waits and each.seconds >= patience}
    for number in sorted(waiting):
        sides: Dict[CallShape, List[Position]] = {}
        for each in members:
            record = each.places[group].calls.get(number)
            if record is not None:
                sides.setdefault(_made(record), []).append(each)
        if len(sides) > 1:  # the ranks make other calls
            return _told(group, number, len(members), sides)
    return {}


def _made(record: Record) -> CallShape:
    return CallShape(record.op, record.peer, 0 if record.op in _OWN_SIZES else record.elements, record.dtype)


def _told(group: str, number: int, size: int, sides: Dict[CallShape, List[Position]]) -> Dict[int, str]:
    ordered = sorted(sides, key=lambda made: (-len(sides[made]), sides[made][0].rank))
    usual = ordered[0]
    guilty = ordered[1:] if len(sides[usual]) * 2 > size else ordered
    return {each.rank: _why(group, number, each, made, usual if made != usual else ordered[1], sides) for made in guilty for each in sides[made]}


def _why(group: str, number: int, position: Position, made: CallShape, other: CallShape, sides: Dict[CallShape, List[Position]]) -> str:
    there = [each.places[group] for each in sides[other]]
    many = "%d rank%s" % (len(there), "" if len(there) == 1 else "s")
    one = "s" if len(there) == 1 else ""
    tail = "in which %s wait%s" % (many, one) if all(place.waits and place.number == number for place in there) else "which %s call%s" % (many, one)
    place = position.places[group]
    verb = "is in" if place.waits and place.number == number else "has called"
    return "%s %s, not%s %s, %s" % (verb, _call(made, other, number), " in" if verb == "is in" else "", _call(other, made, number), tail)


def _call(made: CallShape, other: CallShape, number: int) -> str:
    """Return a call with what tells it from another one."""
    text = "%s %d" % (made.op, number)
    if made.op != other.op:
        return text
    size = " of %d %s" % (made.elements, made.dtype) if (made.elements, made.dtype) != (other.elements, other.dtype) else ""
    return text + size + (" from root %d" % made.root if made.root != other.root else "")
