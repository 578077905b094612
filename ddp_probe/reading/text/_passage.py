"""Collects the lines around a sign of trouble outside tracebacks, and splits them when they refer to another rank or another failure."""

from collections import deque
from typing import Deque, Dict, List, Optional, Tuple

from ddp_probe.reading.failures import consequence
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Failed
from ddp_probe.reading.text._signs import QUIET, TROUBLE, rank_inside, weigh

_AROUND = 3  # Quiet lines kept before and after a sign in a long log.
_LINES, _LETTERS = 200, 1 << 15


class Passages:
    """The passages of one source of lines."""

    def __init__(self, whole: bool) -> None:
        self._whole = whole  # Whether quiet lines are kept too.
        self._before: Deque[Tuple[int, str]] = deque(maxlen=_AROUND)
        self._lines: List[Tuple[int, str]] = []
        self._letters = 0
        self._first = 0  # Number of the first line with a sign.
        self._weight = QUIET
        self._quiet = 0
        self._rank: Optional[int] = None
        self._loss = ""
        self._headline = ""  # The first line that certainly reports a failure.
        self.ready: List[Failed] = []

    @property
    def open(self) -> bool:
        """Return whether following lines may belong to the passage."""
        return bool(self._lines)

    def add(self, number: int, text: str, file: str) -> bool:
        """Add a line; return whether it is kept for now."""
        weight = weigh(text)
        if weight == QUIET and not self._whole:
            return self.skip(number, text, file)
        if self._is_other(text, weight) or len(self._lines) >= _LINES or self._letters > _LETTERS:
            self.end(file)
        if not self._whole and not self._lines:
            self._lines.extend(self._before)
        self._before.clear()
        self._append(number, text)
        if weight > QUIET:
            self._mark(number, text, weight)
        return True

    def skip(self, number: int, text: str, file: str) -> bool:
        """Add a line known to be quiet, in a long log, which keeps quiet lines only around a sign; return whether it is kept."""
        if self._lines and self._quiet < _AROUND:
            self._quiet += 1
            self._append(number, text)
            return True
        self.end(file)
        self._before.append((number, text))
        return False

    def _append(self, number: int, text: str) -> None:
        self._lines.append((number, text[:8000]))
        self._letters += min(len(text), 8000)

    def _is_other(self, text: str, weight: int) -> bool:
        """Return whether a line is about another rank or another failure than the passage: it must not change the passage's cause."""
        if weight == QUIET or not self._lines or text[:1].isspace():
            return False
        rank, loss = rank_inside(text), consequence(text)
        if not self._first:
            return rank is not None or bool(loss)
        return rank != self._rank or loss != self._loss

    def _mark(self, number: int, text: str, weight: int) -> None:
        if not self._first:
            self._first, self._loss = number, consequence(text)
        if self._rank is None:
            self._rank = rank_inside(text)
        if weight == TROUBLE and not self._headline:
            self._headline = text
        self._weight = max(self._weight, weight)
        self._quiet = 0

    def end(self, file: str) -> None:
        """End the passage."""
        lines, self._lines = self._lines, []
        while lines and not lines[-1][1].strip():
            lines.pop()
        while lines and not lines[0][1].strip():
            lines.pop(0)
        if lines:
            self.ready.append(self._failed(lines, file))
        self._first, self._weight, self._quiet, self._rank, self._loss, self._letters, self._headline = 0, QUIET, 0, None, "", 0, ""

    def _failed(self, lines: List[Tuple[int, str]], file: str) -> Failed:
        number = self._first or lines[0][0]
        failed = Failed(rank=self._rank, when=float(number), at=LogLine(file, number), type="", message="\n".join(text for _, text in lines))
        failed.source = _by_place(lines, file)
        failed.uncaught = self._weight == TROUBLE
        failed.consequence = self._loss
        failed.headline = self._headline
        return failed


def _by_place(lines: List[Tuple[int, str]], file: str) -> Dict[Tuple[str, int], str]:
    """Return the lines with their numbers: a passage from a log of several ranks has gaps."""
    found: Dict[Tuple[str, int], str] = {}
    for number, text in lines:
        key = (file, number)
        found[key] = found[key] + "\n" + text if key in found else text
    return found
