"""Keeps the first and the last failures and lines of a long log."""

from bisect import insort
from collections import deque
from typing import Deque, List, Optional, Tuple

from ddp_probe.reading.model import Failed

_FIRST, _LAST = 2000, 500  # Failures.
_WORDS, _LAST_WORDS = 1 << 20, 1 << 18  # Characters of them.
_LETTERS = 1 << 19  # Characters of text from each end.

_Kept = Tuple[float, int, Failed, Optional[int]]


def _size(failed: Failed) -> int:
    return len(failed.message) + 100 * len(failed.frames)


class Failures:
    """The first and the last failures of a log, by line. A failure with a long message may be added late."""

    def __init__(self) -> None:
        self._first: List[_Kept] = []
        self._last: Deque[_Kept] = deque()
        self._letters = self._last_letters = 0
        self._count = 0
        self.passed = 0  # Number of failures in the middle, which are not kept.

    def add(self, failed: Failed, local_rank: Optional[int]) -> None:
        """Add a failure; with the local rank that printed it, if only that is known."""
        self._count += 1
        insort(self._first, (failed.when, self._count, failed, local_rank))
        self._letters += _size(failed)
        while len(self._first) > 1 and (len(self._first) > _FIRST or self._letters > _WORDS):
            self._late(self._first.pop())

    def _late(self, kept: _Kept) -> None:
        size = _size(kept[2])
        self._letters -= size
        self._last.append(kept)
        self._last_letters += size
        while len(self._last) > 1 and (len(self._last) > _LAST or self._last_letters > _LAST_WORDS):
            self._last_letters -= _size(self._last.popleft()[2])
            self.passed += 1

    def all(self, offset: Optional[int]) -> List[Failed]:
        """Return the failures by line; a local rank becomes a rank if the log shows their offset."""
        kept = sorted((*self._first, *self._last), key=lambda each: each[:2])
        for _, _, failed, local_rank in kept:
            if failed.rank is None and local_rank is not None and offset is not None:
                failed.rank = local_rank + offset
        return [failed for _, _, failed, _ in kept]


class Text:
    """The lines of a log that may matter, from its beginning and its end."""

    def __init__(self) -> None:
        self._first: List[Tuple[int, str]] = []
        self._last: Deque[Tuple[int, str]] = deque()
        self._room = _LETTERS
        self._letters = 0

    def add(self, number: int, text: str) -> None:
        """Add a line."""
        text = text[:8000]
        if self._room > 0:
            self._room -= len(text) + 1
            self._first.append((number, text))
            return
        self._last.append((number, text))
        self._letters += len(text) + 1
        while self._letters > _LETTERS:
            self._letters -= len(self._last.popleft()[1]) + 1

    def all(self) -> str:
        """Return the text."""
        return "\n".join(text for _, text in sorted((*self._first, *self._last), key=lambda each: each[0]))
