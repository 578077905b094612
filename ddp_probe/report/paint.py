"""Prints wrapped lines, with colours in a terminal. Six styles are enough, so no library is needed."""

import os
import shutil
import sys
from typing import Iterable, Optional, TextIO

from ddp_probe.report.layout import StyledLine

BAD, WARN, GOOD, STRONG, QUIET, REMOVED, ADDED = "bad", "warn", "good", "strong", "quiet", "removed", "added"
_CODES = {BAD: "1;31", WARN: "1;33", GOOD: "1;32", STRONG: "1", QUIET: "2", REMOVED: "31", ADDED: "32"}


def width() -> int:
    """Return the width: COLUMNS, else the terminal's, else 80."""
    return shutil.get_terminal_size((80, 24)).columns or 80


def write(page: Iterable[StyledLine], stream: Optional[TextIO] = None) -> None:
    """Print the lines at once. The terminal wraps longer ones, so that a long path can be copied whole."""
    stream = stream or sys.stdout
    stream.write(text(page, stream))


def text(page: Iterable[StyledLine], stream: TextIO) -> str:
    """Return what is written to a stream for these lines."""
    shown = _coloured if colours(stream) else _plain
    return "".join(shown(line) + "\n" for line in page)


def colours(stream: TextIO) -> bool:
    """Return whether to use colours: NO_COLOR overrides FORCE_COLOR, and both override the kind of stream."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def _plain(line: StyledLine) -> str:
    return line.text


def _coloured(line: StyledLine) -> str:
    """Colour the text but not its indent; a style without a code changes nothing."""
    code = _CODES.get(line.style)
    bare = line.text.lstrip(" ")
    return "%s\x1b[%sm%s\x1b[0m" % (line.text[: len(line.text) - len(bare)], code, bare) if code and bare else line.text
