"""Undo: retire every wrapper, put back each place and alias, take ours out of what others built on it, name the rest."""

from typing import Iterator, List

from ddp_probe.ours import ours

from .census import snapshot, spaces
from .certificate import Entry
from .chain import leads_to, splice, walk
from .describe import describe
from .holders import held_elsewhere
from .patch import Seat
from .place import MISSING, Place
from .wrapper import without_us, wrapper_in


def restore(seats: List[Seat]) -> List[Entry]:
    """Put everything back and return what was done, checked by identity."""
    for seat in seats:
        seat.retired = True
    entries = [_restore_place(seat) for seat in reversed(seats)]
    if seats:
        entries += _restore_aliases()
        entries += [entry for seat in seats for entry in _lost_aliases(seat)]
        entries += held_elsewhere(seats)
    return entries


def _restore_place(seat: Seat) -> Entry:
    found, target, label = seat.place.read(), seat.target, seat.place.label
    kind, expected = ("attribute", seat.raw) if seat.place.existed else ("slot", MISSING)
    if found is seat.placed:
        _put(seat.place, expected)
        back = seat.place.read() is expected
        return Entry(target, label, kind, back, _said(kind, back))
    if found is expected:
        return Entry(target, label, kind, True, "Somebody else put it back.")
    return _taken(seat, seat.place, found)


def _put(place: Place, value: object) -> None:
    try:
        if value is MISSING:
            place.clear()
        else:
            place.write(value)
    except ours(TypeError, AttributeError):  # The holder has been made read-only since; the check by identity says so.
        pass


def _said(kind: str, back: bool) -> str:
    if not back:
        return "The place cannot be written any more; the wrapper in it is switched off."
    return "The slot that the probe made is gone." if kind == "slot" else "The original is back."


def _taken(seat: Seat, place: Place, found: object) -> Entry:
    """Deal with a place that somebody else has written to since."""
    if found is MISSING:
        return Entry(seat.target, place.label, "overwritten", False, "Somebody removed the attribute.")
    if not leads_to(found, seat.wrapper):
        return Entry(seat.target, place.label, "overwritten", False, "Somebody put something else there, which stays: %s." % describe(found))
    for one in list(walk(found)):
        splice(one)
    if leads_to(found, seat.wrapper):
        return Entry(seat.target, place.label, "unreachable", False, "Somebody's wrapper holds a switched-off one: %s." % describe(found))
    return Entry(seat.target, place.label, "spliced", True, "Somebody's wrapper stays and calls the original: %s." % describe(found))


def _restore_aliases() -> Iterator[Entry]:
    """Go through every module once: aliases replaced by us, those made since, and leftovers of an earlier undo."""
    for name, _, space in spaces():
        for attribute, value in snapshot(space):
            wrapper = wrapper_in(value)
            if wrapper is not None and wrapper._self_seat.retired:
                original = without_us(value)
                space[attribute] = original
                back = space.get(attribute) is original
                yield Entry(wrapper._self_seat.target, "%s.%s" % (name, attribute), "alias", back, _said("alias", back))


def _lost_aliases(seat: Seat) -> Iterator[Entry]:
    """Report aliases that somebody has written to since they were replaced."""
    for alias in seat.aliases:
        found = alias.read()
        if found is not seat.original:
            yield _taken(seat, alias, found)
