"""Shows the progress of long work on a terminal's stderr after the first second."""

import sys
import time
from typing import Optional, TextIO

from ddp_probe.wording.words import size

_AFTER, _EVERY = 1.0, 0.2  # Seconds.
_CELLS = 30


class _Line:
    """One line that is redrawn and finally cleared."""

    def __init__(self, stream: Optional[TextIO] = None, *, at_once: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._shown = self._stream is not None and self._stream.isatty()
        self._every = 0.0 if at_once else _EVERY
        self._next = time.monotonic() + (0.0 if at_once else _AFTER)
        self._drawn = False

    def draw(self, text: str) -> None:
        """Draw if it is due."""
        now = time.monotonic()
        if not self._shown or now < self._next:
            return
        self._next, self._drawn = now + self._every, True
        self._stream.write("\r%-70s" % text)
        self._stream.flush()

    def clear(self) -> None:
        """Clear the line."""
        if self._drawn:
            self._stream.write("\r%s\r" % (" " * 70))
            self._stream.flush()
            self._drawn = False


class Bar(_Line):
    """How much of all bytes has been read."""

    def __call__(self, read: int, everything: int) -> None:
        """Draw if it is due."""
        part = read / everything if everything else 1.0
        full = int(part * _CELLS)
        bar = "#" * full + "-" * (_CELLS - full)
        self.draw("reading  [%s] %3d %% of %s" % (bar, part * 100, size(everything)))


class Steps(_Line):
    """Which of several steps is going on."""

    def __call__(self, number: int, everything: int, name: str) -> None:
        """Draw if it is due."""
        self.draw("%d of %d: %s" % (number, everything, name[:50]))
