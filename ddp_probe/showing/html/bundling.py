"""Fits the spans of a lane into a number: short ones of one kind that follow each other become one, so that a page stays small."""

from typing import List, NamedTuple, Sequence

from ddp_probe.showing.timeline import HANG, Span

DEPTH = 3  # Rows of one lane; what lies deeper is in the last one.


class PlacedSpan(NamedTuple):
    """A span, in which row of its lane it is, and of how many spans it is made."""

    span: Span
    row: int
    size: int


def placed(spans: Sequence[Span], most: int, length: float) -> List[PlacedSpan]:
    """Return at most about this many spans, each below the one that it lies in; what failed, never ended or is guilty stays by itself.

    The times in which nothing moved are below what the rank was in.
    """
    found = _rows([span for span in spans if span.kind != HANG])
    gap = length / 4000 if length > 0 else 1.0
    while len(found) > most and gap < length:
        found = _bundled(found, gap)
        gap *= 2
    return found + [
        PlacedSpan(span, 1 + max((one.row for one in found if one.span.end > span.begin), default=-1), 1) for span in spans if span.kind == HANG
    ]


def _rows(spans: Sequence[Span]) -> List[PlacedSpan]:
    """Give each span the first row that is free when it begins."""
    free = [float("-inf")] * DEPTH
    found: List[PlacedSpan] = []
    for span in sorted(spans, key=lambda one: (one.begin, -one.end)):
        row = next((number for number, until in enumerate(free) if until <= span.begin), DEPTH - 1)
        free[row] = max(free[row], span.end)
        found.append(PlacedSpan(span, row, 1))
    return found


def _bundled(spans: Sequence[PlacedSpan], gap: float) -> List[PlacedSpan]:
    kept: List[PlacedSpan] = []
    last = [-1] * DEPTH  # Of each row, where its latest span is.
    for one in spans:
        before = kept[last[one.row]] if last[one.row] >= 0 else None
        if before is not None and _alike(before.span, one.span) and one.span.end - before.span.begin <= gap:
            joined = before.span._replace(end=max(before.span.end, one.span.end), site=None, at=None, detail="")
            kept[last[one.row]] = PlacedSpan(joined, one.row, before.size + one.size)
            continue
        last[one.row] = len(kept)
        kept.append(one)
    return kept


def _alike(one: Span, other: Span) -> bool:
    return one.kind == other.kind and all(each.ended and not each.failed and not each.guilty for each in (one, other))
