"""One call in the log of a rank: the events before and after it, and their lines; and the calls that are kept of a process."""

from array import array
from collections import deque
from operator import attrgetter
from typing import Any, Deque, Dict, Generic, Iterable, Iterator, List, NamedTuple, Optional, Tuple, TypeVar

import msgspec

from ddp_probe.shared import schema
from ddp_probe.shared.schema import Failure, Site

E = TypeVar("E", bound=schema.Event)


class LogLine(NamedTuple):
    """The file and number of a log line."""

    file: str
    line: int


WATCHERS = (
    schema.HangSuspected,
    schema.HangOver,
    schema.ProcessResumed,
    schema.Stacks,
    schema.LauncherHang,
    schema.LauncherSilent,
    schema.LauncherResumed,
    schema.DeviceState,
    schema.CardsState,
)
"""The events about the state of the process and its host, not about what the job did."""


class LoggedCall(msgspec.Struct, Generic[E], eq=False):
    """One watched call, or one point in time: the events written before and after it.

    Its process says who wrote them: fields such as `rank` and `pid` are not kept in the events, so that those of all ranks can be shared.
    It is a msgspec.Struct because that takes less than half the time of a plain object to make: a report makes millions.
    """

    begin: E  # Written before the call; if that line is missing, the one written after it.
    file: str
    line: int
    when: float  # Seconds since 1970 on the run's common clock.
    end: Optional[E] = None  # Written after the call; None while it runs or hangs.
    line_after: int = 0
    until: Optional[float] = None

    def __eq__(self, other: object) -> bool:
        """Return whether both stand for the same call: an object is made anew each time it is requested."""
        return isinstance(other, LoggedCall) and self.line == other.line and self.file == other.file

    def __hash__(self) -> int:
        return hash((self.file, self.line))

    @property
    def at(self) -> LogLine:
        """Return the line written before the call. It is created on request: half a million of them would fill the memory."""
        return LogLine(self.file, self.line)

    @property
    def ended_at(self) -> Optional[LogLine]:
        """Return the line written after the call."""
        return LogLine(self.file, self.line_after) if self.line_after else None

    @property
    def name(self) -> str:
        """Return the event's name."""
        return str(self.begin.__struct_config__.tag)

    @property
    def is_watchers(self) -> bool:
        """Return whether it is about the state of the process, such as that it stood still, not about what the job did."""
        return isinstance(self.begin, WATCHERS)

    @property
    def failure(self) -> Optional[Failure]:
        """Return the exception that the call raised."""
        return self.end.failure if self.end is not None else None

    @property
    def open(self) -> bool:
        """Return whether the call has not returned."""
        return self.end is None

    @property
    def site(self) -> Optional[Site]:
        """Return the line of the job that made the call."""
        return self.begin.site or (self.end.site if self.end is not None else None)


# The kept calls of one process: for each kind of event the first, the last and the failed ones, as numbers and shared events.
#
# A hundred thousand ranks must fit in memory, so a LoggedCall is made on request. Two that stand for the same call are equal.

# A process keeps this many first calls, last calls and failures of each kind; fewer in a launch of very many ranks.
MOST, FAILURES = 8, 16
_VERY_MANY, _FEW = 1 << 14, 2
_NEVER = float("-inf")

_line = attrgetter("line")


class KeptKind(NamedTuple):
    """The calls of one kind: the place of the first kept one, how many are kept, how many there were, and how many of those failed."""

    first: int
    kept: int
    all: int
    failed: int


class _Growing:
    """The calls of one kind while a file is read."""

    __slots__ = ("count", "failed", "failures", "first", "last")

    def __init__(self) -> None:
        self.count = 0
        self.failures = 0
        self.first: List[LoggedCall[Any]] = []
        self.last: Optional[Deque[LoggedCall[Any]]] = None  # Created when needed: most kinds occur once or twice.
        self.failed: List[LoggedCall[Any]] = []

    def add(self, call: LoggedCall[Any]) -> None:
        self.count += 1
        if len(self.first) < MOST:
            self.first.append(call)
            return
        if self.last is None:
            self.last = deque(maxlen=MOST)
        self.last.append(call)

    def all(self, most: int) -> List[LoggedCall[Any]]:
        """Return the calls that are kept, by line; of the calls that are neither failed nor first, the last."""
        later = [*self.first[most:], *(self.last or ())][-most:]
        return sorted({*self.first[:most], *later, *self.failed}, key=_line)


class GrowingCalls:
    """Collects the calls of a process while its file is read."""

    def __init__(self) -> None:
        self._kinds: Dict[str, _Growing] = {}

    def keep(self, call: LoggedCall[Any]) -> None:
        """Add a call."""
        kind = self._kinds.get(call.name)
        if kind is None:
            kind = self._kinds[call.name] = _Growing()
        kind.add(call)

    def keep_failed(self, call: LoggedCall[Any]) -> None:
        """Note that a call failed."""
        kind = self._kinds.get(call.name)
        if kind is not None:
            kind.failures += 1
            if len(kind.failed) < FAILURES:
                kind.failed.append(call)

    def finished(self, world_size: int) -> "Tuple[Dict[str, KeptKind], List[LoggedCall[Any]]]":
        """Return the kinds and the calls that they keep, one kind after another."""
        most = MOST if world_size <= _VERY_MANY else _FEW
        kinds: Dict[str, KeptKind] = {}
        calls: List[LoggedCall[Any]] = []
        for name, growing in self._kinds.items():
            kept = growing.all(most)
            kinds[name] = KeptKind(len(calls), len(kept), growing.count, growing.failures)
            calls += kept
        return kinds, calls


class KeptCalls:
    """The calls of a process whose file has been read. Equal parts of many processes are one object."""

    __slots__ = ("events", "file", "kinds", "lines", "times")

    def __init__(
        self, file: str, kinds: Dict[str, KeptKind], events: Tuple[Optional[schema.Event], ...], lines: "array[int]", times: "array[float]"
    ) -> None:
        self.file = file
        self.kinds = kinds
        self.events = events  # Two for each call: the event written before it and the event written after it.
        self.lines = lines  # The lines of both.
        self.times = times  # The times of both, on the clock of the process's host.

    def of(self, name: str, offset: float) -> "List[LoggedCall[Any]]":
        """Return the kept calls of a kind, in order, with their times shifted."""
        kind = self.kinds.get(name)
        if kind is None:
            return []
        call = self._call
        return [call(place, offset) for place in range(kind.first, kind.first + kind.kept)]

    def one(self, name: str, which: int, offset: float) -> "Optional[LoggedCall[Any]]":
        """Return the first (0) or the last (-1) kept call of a kind."""
        kind = self.kinds.get(name)
        return None if kind is None else self._call(kind.first + which % kind.kept, offset)

    def latest(self, names: Iterable[str], offset: float) -> "Optional[LoggedCall[Any]]":
        """Return the call of some kinds that began last."""
        places = [self.kinds[name].first + self.kinds[name].kept - 1 for name in names]
        return self._call(max(places, key=lambda place: self.lines[2 * place]), offset) if places else None

    def every(self, offset: float) -> "Iterator[LoggedCall[Any]]":
        """Yield all kept calls, in the order of the file."""
        lines = self.lines
        for place in sorted(range(len(lines) // 2), key=lambda place: lines[2 * place]):
            yield self._call(place, offset)

    def failed(self, offset: float) -> "List[LoggedCall[Any]]":
        """Return the kept calls that raised, and the last words of a process that an exception ended, in the order of the file."""
        ends = self.events[1::2]
        places = [place for place, event in enumerate(ends) if event is not None and event.failure is not None]
        return sorted([self._call(place, offset) for place in places], key=_line)

    def without_line_after(self, offset: float) -> "List[LoggedCall[Any]]":
        """Return the kept calls that are over, and no line says how they ended, in the order of the file."""
        without_time = [place for place, until in enumerate(self.times[1::2]) if until == _NEVER]
        over = [place for place in without_time if self.events[2 * place + 1] is not None]
        return sorted([self._call(place, offset) for place in over], key=_line)

    def _call(self, place: int, offset: float) -> "LoggedCall[Any]":
        at = 2 * place
        begin, end = self.events[at], self.events[at + 1]
        until = self.times[at + 1]
        return LoggedCall(
            begin, self.file, self.lines[at], self.times[at] + offset, end, self.lines[at + 1], None if until == _NEVER else until + offset
        )


NO_CALLS = KeptCalls("", {}, (), array("I"), array("d"))


def packed(file: str, kinds: Dict[str, KeptKind], calls: "List[LoggedCall[Any]]") -> KeptCalls:
    """Return calls as they are kept."""
    events: List[Any] = []
    lines, times = array("I"), array("d")
    for call in calls:
        events += (call.begin, call.end)
        lines.extend((call.line, call.line_after))
        times.extend((call.when, _NEVER if call.until is None else call.until))
    return KeptCalls(file, kinds, tuple(events), lines, times)
