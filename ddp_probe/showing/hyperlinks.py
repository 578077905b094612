"""Hyperlinks of terminals (OSC 8): a name of a file that the terminal opens on a click. Its text and its width stay the same."""

import functools
import os
import platform
from typing import Mapping
from urllib.parse import quote

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


def text(line: StyledLine) -> str:
    """Return the line's text with its links, if the files are there."""
    made = line.text
    for link in sorted(line.links, reverse=True):
        target = address(link.path)
        if target:
            made = made[: link.begin] + _LINK % (target, made[link.begin : link.end]) + made[link.end :]
    return made


@functools.lru_cache(maxsize=1024)
def address(path: str) -> str:
    """Return the address of a file of this host, all but letters, digits and /._-~ as numbers; empty if there is no such file."""
    try:
        made = "file://%s%s" % (quote(platform.node(), safe=""), quote(os.fsencode(os.path.abspath(path)))) if os.path.isfile(path) else ""
    except (OSError, ValueError):  # A name that a log made up.
        return ""
    return made if len(made) <= _LONGEST else ""
