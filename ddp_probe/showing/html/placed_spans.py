"""Fits the spans of a lane into a number, which keeps a page small: short ones in a row become one."""

from typing import List, NamedTuple, Sequence

from ddp_probe.showing.timeline import HANG, Span

DEPTH = 3  # Rows of one lane; deeper spans are in the last one.


class PlacedSpan(NamedTuple):
    """A span, in which row of its lane it is, and of how many spans it is made."""

    span: Span
    row: int
    size: int


def placed(spans: Sequence[Span], most: int, length: float) -> List[PlacedSpan]:
    """Return at most about this many spans, each below the span that contains it; a span that failed, never ended or is guilty is not joined.

    The times in which nothing moved are below what the rank was in.
    """
    rows = _rows([span for span in spans if span.kind != HANG])
    gap = length / 4000 if length > 0 else 1.0
    while len(rows) > most and gap < length:
        rows = _bundled(rows, gap)
        gap *= 2
    return rows + [
        PlacedSpan(span, 1 + max((row.row for row in rows if row.span.end > span.begin), default=-1), 1) for span in spans if span.kind == HANG
    ]


def _rows(spans: Sequence[Span]) -> List[PlacedSpan]:
    """Give each span the first row that is free when it begins."""
    free = [float("-inf")] * DEPTH
    rows: List[PlacedSpan] = []
    for span in sorted(spans, key=lambda time_span: (time_span.begin, -time_span.end)):
        row = next((number for number, until in enumerate(free) if until <= span.begin), DEPTH - 1)
        free[row] = max(free[row], span.end)
        rows.append(PlacedSpan(span, row, 1))
    return rows


def _bundled(spans: Sequence[PlacedSpan], gap: float) -> List[PlacedSpan]:
    kept: List[PlacedSpan] = []
    last = [-1] * DEPTH  # For each row, the place of its latest span.
    for span in spans:
        before = kept[last[span.row]] if last[span.row] >= 0 else None
        if before is not None and _alike(before.span, span.span) and span.span.end - before.span.begin <= gap:
            joined = before.span._replace(end=max(before.span.end, span.span.end), site=None, at=None, detail="")
            kept[last[span.row]] = PlacedSpan(joined, span.row, before.size + span.size)
            continue
        last[span.row] = len(kept)
        kept.append(span)
    return kept


def _alike(time_span: Span, other: Span) -> bool:
    both_plain = all(span.ended and not span.failed and not span.guilty for span in (time_span, other))
    return time_span.kind == other.kind and both_plain
