"""Prints laid-out lines: in colour in a terminal, as they are anywhere else. The page needs six styles, and no library for them."""

import os
import shutil
import sys
from typing import Iterable, Optional, TextIO

from ddp_probe.report.layout import Line

BAD, WARN, GOOD, STRONG, QUIET, REMOVED, ADDED = "bad", "warn", "good", "strong", "quiet", "removed", "added"
_CODES = {BAD: "1;31", WARN: "1;33", GOOD: "1;32", STRONG: "1", QUIET: "2", REMOVED: "31", ADDED: "32"}


def width() -> int:
    """Return the columns there are: those of COLUMNS, else of the terminal, else 80."""
    return shutil.get_terminal_size((80, 24)).columns or 80


def write(page: Iterable[Line], stream: Optional[TextIO] = None) -> None:
    """Print the lines at once. The terminal breaks what sticks out, so that a long path can be copied whole."""
    stream = stream or sys.stdout
    shown = _coloured if colours(stream) else _plain
    stream.write("".join(shown(line) + "\n" for line in page))


def colours(stream: TextIO) -> bool:
    """Tell whether colours are wanted: NO_COLOR is stronger than FORCE_COLOR, and both are stronger than what the stream is."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def _plain(line: Line) -> str:
    return line.text


def _coloured(line: Line) -> str:
    """Leave the indent unpainted; a style that has no code is no style."""
    code = _CODES.get(line.style)
    bare = line.text.lstrip(" ")
    return "%s\x1b[%sm%s\x1b[0m" % (line.text[: len(line.text) - len(bare)], code, bare) if code and bare else line.text
