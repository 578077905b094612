"""The axis of the lanes: where a time lies in percent, which times are written below, and how times and lengths are written."""

from datetime import datetime, timezone
from math import floor, log10
from typing import List, NamedTuple

_TICKS = 8
_LAST = 0.96  # Of the axis: there is no room for the text of a later time.


class AxisTick(NamedTuple):
    """A time on the axis."""

    x: str
    text: str


class TimeScale:
    """Turns times into percent of the run."""

    def __init__(self, begin: float, length: float) -> None:
        self.begin, self.length = begin, length

    def at(self, when: float) -> str:
        """Return where a time lies."""
        return "%.4f%%" % (100 * self.share(when - self.begin))

    def share(self, lasted: float) -> float:
        """Return how much of the run a length is."""
        return max(0.0, min(lasted / self.length, 1.0)) if self.length > 0 else 0.0


def ticks(length: float, drawn: float) -> List[AxisTick]:
    """Return times on the axis, at round numbers."""
    if not 0 < length < float("inf"):
        return []
    least = length / _TICKS
    power = 10.0 ** floor(log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)
    count = int(min(length, _LAST * drawn) / step) + 1
    return [AxisTick("%.4f%%" % (100 * number * step / drawn), "%g s" % (number * step)) for number in range(count)]


def seconds(number: float) -> str:
    """Return a time in the unit that fits it."""
    if number < 0:
        return "-" + seconds(-number)
    if number < 1e-3:
        return "%.0f us" % (number * 1e6)
    if number < 1:
        return "%.3g ms" % (number * 1e3)
    if number < 120:
        return "%.3g s" % number
    whole = int(number)
    return "%d min %02d s" % (whole // 60, whole % 60) if number < 7200 else "%d h %02d min" % (whole // 3600, whole // 60 % 60)


def date(when: float) -> str:
    """Return a time as date and time of day, UTC; empty if there is none."""
    try:
        return datetime.fromtimestamp(when, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC") if when > 0 else ""
    except (OverflowError, ValueError, OSError):
        return ""
