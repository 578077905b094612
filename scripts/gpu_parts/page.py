"""Prints the cases, and what came of them, as tables."""

from typing import List, Sequence

from gpu_parts.case import Case, Outcome

_LISTED = ("case", "ranks", "cards", "rehearses", "expected", "what it shows")
_HEADS = ("case", "expected", "report said", "result", "seconds", "")


def listing(cases: Sequence[Case]) -> str:
    """Return the cases with what each needs."""
    rows = [(one.name, str(one.ranks), str(one.cards), "yes" if one.on_cpu else "no", one.expected, one.shows) for one in cases]
    return _table([_LISTED, *rows])


def table(outcomes: Sequence[Outcome]) -> str:
    """Return what came of the cases."""
    rows = [(one.case.name, one.case.expected, one.said or "-", one.status, "%.1f" % one.seconds, one.because) for one in outcomes]
    return _table([_HEADS, *rows])


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines: List[str] = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join(lines) + "\n"
