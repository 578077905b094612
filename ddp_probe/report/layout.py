"""Lays lines out for a width; a path with its line number is never broken, so that it can be copied and clicked."""

from typing import Iterator, List, NamedTuple, Sequence

from ddp_probe.report import safe

LONGEST = 2000  # Characters of one paragraph, at most; a log may hold anything.
CELL = 60  # The same of one cell.


class Line(NamedTuple):
    """One line of a page, and how it stands out where colours are to be had."""

    text: str
    style: str = ""


def wrap(text: str, width: int, first: str = "", rest: str = "") -> List[str]:
    """Return the text in lines of this width, broken at spaces alone; what has no space sticks out."""
    words = safe.line(text, LONGEST).split(" ")
    made: List[str] = []
    current, empty = first, True
    for word in words:
        if not empty and safe.width(current) + 1 + safe.width(word) > width:
            made.append(current.rstrip())
            current, empty = rest, True
            if not word:
                continue
        current, empty = (current + word, False) if empty else (current + " " + word, False)
    return [*made, current.rstrip()]


def sentence(text: str, width: int, indent: int = 0, style: str = "") -> Iterator[Line]:
    """Yield a text that may come from a log: what it has of line breaks makes no lines of its own."""
    for one in wrap(text, width, " " * indent, " " * indent):
        yield Line(one, style)


def paragraph(text: str, width: int, indent: int = 0, style: str = "") -> Iterator[Line]:
    """Yield a rule's own text, its line breaks kept, and what stands in front of each line."""
    for part in text.strip("\n").split("\n"):
        bare = part.lstrip(" ")
        lead = " " * (indent + len(part) - len(bare))
        for one in wrap(bare, width, lead, lead):
            yield Line(one, style)


def labelled(label: str, text: str, width: int, style: str = "") -> Iterator[Line]:
    """Yield a row of a list with its label in front."""
    for one in wrap(text, width, "  %-8s " % label, " " * 11):
        yield Line(one, style)


def item(text: str, width: int) -> Iterator[Line]:
    """Yield one point of a list."""
    for one in wrap(text, width, "  - ", "    "):
        yield Line(one)


def more(count: int) -> Iterator[Line]:
    """Yield how many points are not shown, if there are any."""
    if count > 0:
        yield Line("    ... and %d more; --json has them all" % count, "quiet")


def columns(rows: Sequence[Sequence[str]]) -> List[str]:
    """Return the rows of a table, each column as wide as its widest cell."""
    rows = [[safe.line(cell, CELL) for cell in row] for row in rows]
    widths = [max(safe.width(cell) for cell in column) for column in zip(*rows)]
    return ["  ".join(cell + " " * (size - safe.width(cell)) for cell, size in zip(row, widths)).rstrip() for row in rows]
