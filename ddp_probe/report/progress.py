"""Shows the progress of reading on a terminal's stderr after the first second."""

import sys
import time
from typing import Optional, TextIO

_AFTER, _EVERY = 1.0, 0.2  # Seconds.
_CELLS = 30


class Bar:
    """One line that is redrawn and finally cleared."""

    def __init__(self, stream: Optional[TextIO] = None) -> None:
        self._stream = stream or sys.stderr
        self._shown = self._stream is not None and self._stream.isatty()
        self._start = self._next = time.monotonic() + _AFTER
        self._drawn = False

    def __call__(self, read: int, everything: int) -> None:
        """Draw if it is due."""
        now = time.monotonic()
        if not self._shown or now < self._next:
            return
        self._next, self._drawn = now + _EVERY, True
        part = read / everything if everything else 1.0
        full = int(part * _CELLS)
        self._stream.write("\rreading  [%s%s] %3d %% of %.1f MB" % ("#" * full, "-" * (_CELLS - full), part * 100, everything / 1e6))
        self._stream.flush()

    def clear(self) -> None:
        """Clear the line."""
        if self._drawn:
            self._stream.write("\r%s\r" % (" " * 70))
            self._stream.flush()
            self._drawn = False
