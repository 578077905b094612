"""Wraps lines to a width; a path with its line number is never broken, so that it can be copied and clicked."""

from typing import Iterator, List, NamedTuple, Sequence

from ddp_probe.report import safe

LONGEST = 2000  # Maximum characters of one paragraph; a log may contain anything.
CELL = 60  # Maximum characters of one cell.


class StyledLine(NamedTuple):
    """One line of output, with its style for a terminal with colours."""

    text: str
    style: str = ""


def wrap(text: str, width: int, first: str = "", rest: str = "") -> List[str]:
    """Return the text in lines of this width, broken only at spaces; a longer word is not broken."""
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


def sentence(text: str, width: int, indent: int = 0, style: str = "") -> Iterator[StyledLine]:
    """Yield text that may come from a log: its line breaks become spaces."""
    for one in wrap(text, width, " " * indent, " " * indent):
        yield StyledLine(one, style)


def paragraph(text: str, width: int, indent: int = 0, style: str = "") -> Iterator[StyledLine]:
    """Yield a rule's own text with its line breaks and indentation."""
    for part in text.strip("\n").split("\n"):
        bare = part.lstrip(" ")
        lead = " " * (indent + len(part) - len(bare))
        for one in wrap(bare, width, lead, lead):
            yield StyledLine(one, style)


def labelled(label: str, text: str, width: int, style: str = "") -> Iterator[StyledLine]:
    """Yield a row of a list, with its label first."""
    for one in wrap(text, width, "  %-8s " % label, " " * 11):
        yield StyledLine(one, style)


def item(text: str, width: int) -> Iterator[StyledLine]:
    """Yield one item of a list."""
    for one in wrap(text, width, "  - ", "    "):
        yield StyledLine(one)


def more(count: int) -> Iterator[StyledLine]:
    """Yield how many items are not shown, if any."""
    if count > 0:
        yield StyledLine("    ... and %d more; --json has them all" % count, "quiet")


def columns(rows: Sequence[Sequence[str]]) -> List[str]:
    """Return the rows of a table, each column as wide as its widest cell."""
    rows = [[safe.line(cell, CELL) for cell in row] for row in rows]
    widths = [max(safe.width(cell) for cell in column) for column in zip(*rows)]
    return ["  ".join(cell + " " * (size - safe.width(cell)) for cell, size in zip(row, widths)).rstrip() for row in rows]
