"""Lays the spans of a lane out on tracks, on each of which any two spans are apart or one inside the other.

Viewers take a span that overlaps another one otherwise for a part of it.
"""

from typing import Dict, Iterator, List, NamedTuple, Tuple

from ddp_probe.judging.words import counted
from ddp_probe.showing.timeline import COLLECTIVE, HANG, PHASE, Lane, Span

_NAMES = {PHASE: "phases", COLLECTIVE: "collectives", HANG: "standstill"}
_CALLS = "calls"
_DEEPEST = 32  # Spans inside each other on one track.
_Placed = Tuple[int, int, Span]


class Track(NamedTuple):
    """One row of a viewer: its name, and its spans with begin and end in microseconds since the run began."""

    name: str
    placed: List[_Placed]


def tracks(lane: Lane, since: float) -> Iterator[Track]:
    """Yield the tracks of a lane: its calls, phases, collectives, the times without movement; further ones for spans that overlap others."""
    by_name: Dict[str, List[_Placed]] = {name: [] for name in [_CALLS, *_NAMES.values()]}
    for span in lane.spans:
        by_name[_NAMES.get(span.kind, _CALLS)].append((micros(span.begin - since), micros(span.end - since), span))
    for name, placed in by_name.items():
        note = " (%s not shown)" % counted(lane.left_out, "call") if name == _NAMES[COLLECTIVE] and lane.left_out else ""
        for number, own in enumerate(_apart(placed)):
            yield Track(name + (note if not number else " %d" % (number + 1)), own)


def _apart(placed: List[_Placed]) -> List[List[_Placed]]:
    """Return the spans on as many tracks as they need."""
    rows: List[List[_Placed]] = []
    open_: List[List[int]] = []  # Of each row, the ends of the spans that one more would lie in.
    for one in sorted(placed, key=lambda found: (found[0], -found[1])):
        number = next((number for number, ends in enumerate(open_) if _fits(one, ends)), len(rows))
        if number == len(rows):
            rows.append([])
            open_.append([])
        rows[number].append(one)
        open_[number].append(one[1])
    return rows


def _fits(one: _Placed, ends: List[int]) -> bool:
    """Tell whether a span is apart from those of a row, or inside the innermost that has not ended; drop those that have."""
    while ends and ends[-1] <= one[0]:
        ends.pop()
    return not ends or (one[1] <= ends[-1] and len(ends) < _DEEPEST)


def micros(seconds: float) -> int:
    """Return seconds as whole microseconds."""
    return round(seconds * 1e6)
