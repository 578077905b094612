"""One call in the log of a rank: the events written before and after it, and their lines."""

from typing import Generic, NamedTuple, Optional, TypeVar

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
    schema.Stacks,
    schema.LauncherHang,
    schema.LauncherResumed,
    schema.DeviceState,
    schema.CardsState,
)
"""The events that tell what was seen of the process and of its host, and not what the job did."""


class LoggedCall(msgspec.Struct, Generic[E], eq=False):
    """One watched call, or one point in time: the events written before and after it.

    Its process says who wrote them: fields such as `rank` and `pid` are not kept in the events, so that those of all ranks can be shared.
    It is a msgspec.Struct, as one is made in less than half the time of a plain object: a report makes millions.
    """

    begin: E  # Written before the call; if that line is missing, the one written after it.
    file: str
    line: int
    when: float  # Seconds since 1970 on the run's common clock.
    end: Optional[E] = None  # Written after the call; None while it runs or hangs.
    line_after: int = 0
    until: Optional[float] = None

    def __eq__(self, other: object) -> bool:
        """Return whether both stand for one call: it is made again each time that it is asked for."""
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
        """Return whether it tells what was seen of the process, such as that it stood still, and not what the job did."""
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
