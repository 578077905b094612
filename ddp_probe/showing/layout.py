"""Wraps lines to a width; a path with its line number is never broken, so that it can be copied and clicked."""

import re
from typing import Iterator, List, NamedTuple, Sequence, Tuple

from ddp_probe.showing import safe
from ddp_probe.showing.language import ENGLISH, Language

LONGEST = 2000  # Maximum characters of one paragraph; a log may contain anything.
GLUE = "\u00a0"
"""Stands for a space at which no line is broken, in a text that will be wrapped."""
CELL = 60  # Maximum characters of one cell.
_BEGIN, _END = "（《【「“", "，。：；、！？）》】」”"  # No line ends with one of the first, or begins with one of the second.
_SEGMENT = re.compile("[（《【「]+|[，。：；、！？）》】」]+|[^（《【「，。：；、！？）》】」]+")


class Link(NamedTuple):
    """A part of a line that names a file, which a terminal with hyperlinks can open."""

    begin: int
    end: int
    path: str


class StyledLine(NamedTuple):
    """One line of output, with its style for a terminal with colours, and its links for one with hyperlinks."""

    text: str
    style: str = ""
    links: Tuple[Link, ...] = ()


def wrap(text: str, width: int, first: str = "", rest: str = "") -> List[str]:
    """Return the text in lines of this width, broken at spaces and between the characters of Chinese text; a longer word is not broken."""
    lines: List[str] = []
    current, empty = first, True
    for gap, part in _parts(safe.line(text, LONGEST)):
        if not empty and safe.width(current) + len(gap) + safe.width(part) > width:
            lines.append(current.rstrip().replace(GLUE, " "))
            current, empty = rest, True
            if not part:
                continue
        current, empty = (current + part, False) if empty else (current + gap + part, False)
    return [*lines, current.rstrip().replace(GLUE, " ")]


def _parts(text: str) -> Iterator[Tuple[str, str]]:
    """Yield what is not broken, each with what separates it from the part before it."""
    for word in text.split(" "):
        if word.isascii():
            yield " ", word
        else:
            yield from zip([" ", *[""] * len(word)], _units(word))


def _units(word: str) -> List[str]:
    """Return the characters of Chinese text one by one, each with the marks beside it; a run with other letters, such as a path, is one unit."""
    units: List[str] = []
    for segment in _SEGMENT.findall(word):
        for unit in segment if _is_wide(segment) else [segment]:
            if units and (unit[0] in _END or units[-1][-1] in _BEGIN):
                units[-1] += unit
            else:
                units.append(unit)
    return units


def _is_wide(segment: str) -> bool:
    return all(char in _BEGIN or char in _END or safe.width(char) == 2 for char in segment)


def sentence(text: str, width: int, indent: int = 0, style: str = "") -> Iterator[StyledLine]:
    """Yield text that may come from a log: its line breaks become spaces."""
    for line in wrap(text, width, " " * indent, " " * indent):
        yield StyledLine(line, style)


def paragraph(text: str, width: int, indent: int = 0, style: str = "") -> Iterator[StyledLine]:
    """Yield a rule's text with its line breaks and indentation."""
    for part in text.strip("\n").split("\n"):
        bare = part.lstrip(" ")
        lead = " " * (indent + len(part) - len(bare))
        for line in wrap(bare, width, lead, lead):
            yield StyledLine(line, style)


def labelled(label: str, text: str, width: int, style: str = "") -> Iterator[StyledLine]:
    """Yield a row of a list, with its label first."""
    for line in wrap(text, width, "  %s%s " % (label, " " * (8 - safe.width(label))), " " * 11):
        yield StyledLine(line, style)


def label_of_width(label: str, width: int) -> str:
    """Return a label that takes this many columns, in every language."""
    return label + " " * (width - safe.width(label))


def item(text: str, width: int) -> Iterator[StyledLine]:
    """Yield one item of a list."""
    for line in wrap(text, width, "  - ", "    "):
        yield StyledLine(line)


def more(count: int, say: Language = ENGLISH) -> Iterator[StyledLine]:
    """Yield how many items are not shown, if any."""
    if count > 0:
        yield StyledLine("    " + say("... and %d more; --json has them all") % count, "quiet")


def columns(rows: Sequence[Sequence[str]]) -> List[str]:
    """Return the rows of a table, each column as wide as its widest cell."""
    rows = [[safe.line(cell, CELL) for cell in row] for row in rows]
    widths = [max(safe.width(cell) for cell in column) for column in zip(*rows)]
    return ["  ".join(cell + " " * (size - safe.width(cell)) for cell, size in zip(row, widths)).rstrip() for row in rows]
