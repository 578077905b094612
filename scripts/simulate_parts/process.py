"""One process of a simulated launch: the real writer, under a rank, a host, a pid and a clock that are given to it.

Everything that makes a line is the package's own: Recorder, the chain that stamps and renders, the file. Given are the identity, which a Recorder
takes as parameters anyway, and the time: ranks that live at once are written one after another, so the chain asks a clock of this program's.
"""

import itertools
import time
from typing import Any, Callable, Dict, Optional

from ddp_probe.shared import schema, settings
from ddp_probe.traced.record import Recorder, chain


class Clock:
    """Stands where the writer's chain has the time module; `now` counts the nanoseconds of the launch, the same for all of its hosts."""

    def __init__(self) -> None:
        self.now = 0
        self._wall = 0
        self._boot = 0
        self.gmtime = time.gmtime

    def belong_to(self, host: int, began: int) -> None:
        """Show the time as a host has it: each was started at another time, and their wall clocks are some milliseconds apart."""
        self._wall = began + host * 7919 % 20 * 1000000
        self._boot = (1000 + host * 104729 % 1000000) * 1000000000

    def time_ns(self) -> int:
        """Return Unix time."""
        return self._wall + self.now

    def monotonic_ns(self) -> int:
        """Return the time since this host was started."""
        return self._boot + self.now

    def at(self, seconds: float) -> int:
        """Return a moment of the launch on the host's monotonic clock."""
        return self._boot + int(seconds * 1e9)

    def stand_at(self, seconds: float) -> None:
        """Go to a moment of the launch, never back."""
        self.now = max(self.now, int(seconds * 1e9))


CLOCK = Clock()
chain.time = CLOCK  # type: ignore[attr-defined]  # what of it a line asks


class LoggedProcess:
    """One file of the launch."""

    def __init__(self, folder: str, stem: str, identity: Dict[str, Any], first: Callable[[], schema.Event]) -> None:
        limit = settings.get(settings.MAX_BYTES)
        self.recorder = Recorder(folder, lambda: stem, identity, max_bytes=limit, echo="off", first=first)
        self.recorder.bind(pid=identity["pid"])  # a Recorder knows its own pid, which is this program's
        self.recorder.start()
        self._spans = itertools.count(1)

    @property
    def lines(self) -> int:
        """How many lines were written."""
        return self.recorder.lines

    def point(self, event: schema.Event) -> None:
        """Write something that has no duration."""
        self.recorder.point(event)

    def begin(self, event: schema.Event) -> int:
        """Write that a call is about to be made; return its span."""
        span = next(self._spans)
        self.recorder.write(event, "begin", {"span": span})
        return span

    def end(self, span: int, seconds: float, event: schema.Event) -> None:
        """Write that it has returned."""
        self.recorder.write(event, "end", {"span": span, "seconds": round(seconds, 9)})

    def fail(self, span: int, seconds: float, failure: schema.Failure, event: schema.Event) -> None:
        """Write that it has raised."""
        self.recorder.write(event, "error", {"span": span, "seconds": round(seconds, 9), "failure": failure})

    def call(self, event: schema.Event, seconds: float, answer: Optional[schema.Event] = None) -> None:
        """Write a call that begins now and returns after some seconds."""
        span = self.begin(event)
        CLOCK.now += int(seconds * 1e9)
        self.end(span, seconds, type(event)() if answer is None else answer)

    def close(self) -> None:
        """Let go of the file; a line that is missing in it is a fault of the simulation."""
        path = self.recorder.path
        self.recorder.close()
        if self.recorder.lost or path is None:
            raise OSError("%d lines of %s could not be written." % (self.recorder.lost, path))
