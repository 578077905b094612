"""Which calls of one line of the job are written: the first hundred, then each 2nd, 4th, 8th … hundred."""

import re
from typing import Any, Dict, Optional, Tuple

from ddp_probe.shared.schema import Site

OFTEN = 100
_FEW = 10  # failures of one line and class, of which each is written however often the line makes the call
_LINES = 10_000  # lines that are counted apart; a program that makes up file names has no end of them
_NUMBERED = re.compile(r"[0-9]+")

Line = Tuple[str, str, int]
"""A call, and the file and line that make it."""


class CallCounts:
    """Counts the calls of each line, and those that raised."""

    def __init__(self, often: int = OFTEN) -> None:
        self._often = often
        self._calls: Dict[Any, int] = {}
        self._failures: Dict[Any, int] = {}

    def clear(self) -> None:
        """Start from nothing."""
        self._calls.clear()
        self._failures.clear()

    def count(self, line: Line) -> int:
        """Count a call, and return how many its line has made."""
        return _counted(self._calls, line)

    def is_written(self, nth: int) -> bool:
        """Tell whether the nth call of a line is written: one of the first, or often times a power of two."""
        times, rest = divmod(nth, self._often)
        return nth <= self._often or (rest == 0 and times & (times - 1) == 0)

    def many(self, nth: int) -> Optional[int]:
        """Return the number of a call as its event has it: only if not all calls are written any more."""
        return nth if nth > self._often else None

    def is_failure_written(self, line: Line, kind: type) -> bool:
        """Count a failure; tell whether it is one of the first ten of its class, or a power of two."""
        nth = _counted(self._failures, (line, kind))
        return nth <= _FEW or not nth & (nth - 1)


def line_of(label: str, site: Optional[Site]) -> Line:
    """Return what calls are counted by: a data set of many small files loads one at every sample.

    A notebook gives each cell a file name such as <cell 7> or /tmp/ipykernel_7/7.py; they count as one.
    """
    if site is None:
        return label, "", 0
    file = site.file
    if file.startswith("<") or "ipykernel_" in file:
        file = _NUMBERED.sub("N", file) if "ipy" not in file else "<cell>"
    return label, file, site.line


def _counted(counts: Dict[Any, int], key: Any) -> int:
    """Count one more, and return how many they are now; keys beyond a bound share one count."""
    if key not in counts and len(counts) >= _LINES:
        key = None
    counts[key] = nth = counts.get(key, 0) + 1
    return nth
