"""Prints a page through the pager of the reader if it is longer than the terminal, as git does."""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from typing import Dict, List, Mapping, Sequence

from ddp_probe.showing import paint, safe
from ddp_probe.showing.layout import StyledLine

_FLAGS = "FRX"
"""less ends at once if all fits, passes colours on, and leaves on the screen what was read."""


def write(page: Sequence[StyledLine]) -> None:
    """Print the lines; through a pager if a person can use one and the page is longer than the terminal."""
    command = pager(os.environ) if is_longer(page) else []
    if not command or not _paged(command, [line._replace(links=()) for line in page]):
        paint.write(page)


def pager(environ: Mapping[str, str]) -> List[str]:
    """Return the command of the pager; empty if there is none, or nobody at a terminal for it."""
    try:
        words = shlex.split(environ.get("PAGER", "less"))
    except ValueError:  # A quotation without an end.
        return []
    is_usable = sys.stdin.isatty() and sys.stdout.isatty() and environ.get("TERM", "dumb") != "dumb"
    if not is_usable or environ.get("CI") or words[:1] == ["cat"]:
        return []
    return words if words and shutil.which(words[0]) else []


def is_longer(page: Sequence[StyledLine]) -> bool:
    """Tell whether a page does not fit on the terminal, on which a shell's prompt needs a line, too."""
    terminal = shutil.get_terminal_size((80, 24))
    rows = sum(max(1, -(-safe.width(line.text) // terminal.columns)) for line in page)
    return rows >= terminal.lines


def _paged(command: List[str], page: Sequence[StyledLine]) -> bool:
    """Give the page to the pager, and wait for its end; false if it cannot be started."""
    sys.stdout.flush()
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=_environment())
    except OSError:
        return False
    text = paint.text(page, sys.stdout).encode("utf-8", "backslashreplace")
    if process.stdin is not None:
        # The pager may end before it has read all.
        with contextlib.suppress(OSError, KeyboardInterrupt), process.stdin:
            process.stdin.write(text)
    while True:
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is for the pager, which ends with q.
            process.wait()
            return True


def _environment() -> Dict[str, str]:
    return {"LESS": _FLAGS, "LESSCHARSET": "utf-8", "LV": "-c", **os.environ}
