"""Shows looks at a running job one after another: in a terminal, each replaces the one before."""

import os
import shutil
import sys
import time
from typing import Callable, Iterable, List

from ddp_probe.showing import paint
from ddp_probe.showing.language import Language
from ddp_probe.showing.layout import StyledLine
from ddp_probe.showing.watch.watch_look import LiveView
from ddp_probe.showing.watch_page import ROWS, table_lines

_SHARE = 0.2  # Maximum share of one core.
_OTHER_LINES = 12  # Lines of a screen that are kept for what is not a row.


def redraws() -> bool:
    """Return whether stdout is a terminal that can be redrawn."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def watch(live: LiveView, run: str, interval: float, below: Callable[[int], Iterable[StyledLine]], say: Language) -> int:
    """Look until the job has ended, or until Ctrl-C, as for each command; the last table stays on the screen."""
    drawn = 0
    while True:
        began = time.process_time()
        look = live.look()
        drawn = _draw([*table_lines(look, run, _width(), _rows(), say), *below(_width())], drawn)
        if look.over:
            return 0
        time.sleep(max(interval, (time.process_time() - began) * (1 / _SHARE - 1)))


def _draw(page: List[StyledLine], drawn: int) -> int:
    """Write the page over the previous one, in one piece, so that Ctrl-C cannot interrupt it; return how many lines it has."""
    back = "\x1b[%dA\r\x1b[J" % drawn if drawn else ""
    sys.stdout.write(back + paint.text(page, sys.stdout))
    sys.stdout.flush()
    return len(page)


def _width() -> int:
    return max(40, paint.width())


def _rows() -> int:
    """Return how many rows the terminal has room for: what has left the screen cannot be redrawn."""
    return max(3, min(ROWS, shutil.get_terminal_size((80, 40)).lines - _OTHER_LINES))
