"""Prints wrapped lines, with colours and links in a terminal. Six styles are enough, so no library is needed."""

import functools
import os
import shutil
import sys
from typing import Iterable, Mapping, Optional, TextIO

from ddp_probe.showing.layout import StyledLine

_PROGRAMS = frozenset(("ghostty", "iTerm.app", "mintty", "vscode", "WezTerm"))
_TERMS = ("foot", "xterm-ghostty", "xterm-kitty")
_MULTIPLEXERS = ("screen", "tmux")  # They pass on the variables of the terminal that they were started in, but not always its links.
_VTE = 5000  # The number of VTE 0.50.0, which crashes on some links; later ones do not.
_LONGEST = 2083  # VTE ignores longer addresses.
_LINK = "\x1b]8;;%s\x1b\\%s\x1b]8;;\x1b\\"


def understood(environ: Mapping[str, str]) -> bool:
    """Return whether this environment is that of a terminal with hyperlinks; false if that is not certain."""
    term = environ.get("TERM", "dumb")
    if term == "dumb" or term.startswith(_MULTIPLEXERS) or environ.get("TMUX") or environ.get("STY"):
        return False
    vte = environ.get("VTE_VERSION", "")
    return bool(
        (vte.isdecimal() and int(vte) > _VTE)
        or environ.get("TERM_PROGRAM") in _PROGRAMS
        or environ.get("WT_SESSION")
        or environ.get("KITTY_WINDOW_ID")
        or term.startswith(_TERMS)
    )


def linked_text(line: StyledLine) -> str:
    """Return the line's text with its links, if the files are there."""
    text = line.text
    for link in sorted(line.links, reverse=True):
        target = address(link.path)
        if target:
            text = text[: link.begin] + _LINK % (target, text[link.begin : link.end]) + text[link.end :]
    return text


@functools.lru_cache(maxsize=1024)
def address(path: str) -> str:
    """Return the address of a file of this host, all but letters, digits and /._-~ as numbers; empty if there is no such file."""
    from urllib.parse import quote

    try:
        url = "file://%s%s" % (quote(os.uname().nodename, safe=""), quote(os.fsencode(os.path.abspath(path)))) if os.path.isfile(path) else ""
    except (OSError, ValueError):  # A name that a log made up.
        return ""
    return url if len(url) <= _LONGEST else ""


BAD, WARN, GOOD, STRONG, QUIET, REMOVED, ADDED = "bad", "warn", "good", "strong", "quiet", "removed", "added"
AUTO, ALWAYS, NEVER = "auto", "always", "never"
CHOICES = (AUTO, ALWAYS, NEVER)
_CODES = {BAD: "1;31", WARN: "1;33", GOOD: "1;32", STRONG: "1", QUIET: "2", REMOVED: "31", ADDED: "32"}

_when = AUTO


def choose(when: str) -> None:
    """Set when colours are used: always, never, or as the environment and the stream say."""
    global _when
    _when = when


def width() -> int:
    """Return the width: COLUMNS, else the terminal's, else 80."""
    return shutil.get_terminal_size((80, 24)).columns or 80


def write(page: Iterable[StyledLine], stream: Optional[TextIO] = None) -> None:
    """Print the lines at once. The terminal wraps longer ones, so that a long path can be copied whole."""
    stream = stream or sys.stdout
    stream.write(text(page, stream))


def text(page: Iterable[StyledLine], stream: TextIO) -> str:
    """Return what is written to a stream for these lines."""
    coloured, linked = colours(stream), links(stream)
    return "".join(_shown(line, coloured, linked) + "\n" for line in page)


def colours(stream: TextIO) -> bool:
    """Return whether to use colours: --color overrides NO_COLOR, NO_COLOR overrides FORCE_COLOR, and all of them override the kind of stream."""
    if _when != AUTO:
        return _when == ALWAYS
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def links(stream: TextIO) -> bool:
    """Return whether to use links: in a terminal that is known to have them, and only with colours. A pipe gets none, whatever --color says."""
    return stream.isatty() and colours(stream) and understood(os.environ)


def _shown(line: StyledLine, coloured: bool, linked: bool) -> str:
    """Return the text; the indent has neither colour nor links. A style without a code changes nothing."""
    text = linked_text(line) if linked and line.links else line.text
    code = _CODES.get(line.style) if coloured else None
    indent = len(line.text) - len(line.text.lstrip(" "))
    return "%s\x1b[%sm%s\x1b[0m" % (text[:indent], code, text[indent:]) if code and indent < len(line.text) else text
