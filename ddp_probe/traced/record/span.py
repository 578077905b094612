"""Links the event before a call to the event after it."""

import time
from typing import Any, Dict, List, Optional, Protocol

from ddp_probe.shared import schema

from ._writer import Writer


class SpanRecorder(Protocol):
    """What a call needs of its recorder."""

    writer: Writer

    def write(self, event: schema.Event, phase: str, more: Dict[str, Any]) -> None:
        """Write one line."""

    def keep(self, lines: List[Any]) -> None:
        """Keep lines for the end of a full file."""


class Span:
    """One logged call, whose number links its begin event to its end or error event. It ends only in the process where it began."""

    __slots__ = ("_asked", "_recorder", "_started", "_told", "_writer", "id")

    def __init__(self, recorder: SpanRecorder, number: int, event: schema.Event) -> None:
        self.id = number
        self._recorder: Optional[SpanRecorder] = recorder
        self._asked = event
        self._told = False
        self._writer = recorder.writer
        self._started = time.perf_counter()

    def begin(self) -> None:
        """Write that the call is about to be made; the line is in the file when this returns."""
        recorder = self._recorder
        if recorder is None:
            return
        try:
            recorder.write(self._asked, "begin", {"span": self.id})
            self._told = not recorder.writer.full
        except BaseException:  # a signal handler of the job's: what has not begun does not end
            if not recorder.writer.landed():
                self._recorder = None
            raise

    def end(self, event: Optional[schema.Event] = None) -> None:
        """Write that the call has returned."""
        self._finish("end", event, None)

    def fail(self, failure: schema.Failure, event: Optional[schema.Event] = None) -> None:
        """Write that the call has raised."""
        self._finish("error", event, failure)

    def _finish(self, phase: str, event: Optional[schema.Event], failure: Optional[schema.Failure]) -> None:
        seconds = time.perf_counter() - self._started
        recorder, self._recorder = self._recorder, None
        if recorder is None or recorder.writer is not self._writer:
            return
        more: Dict[str, Any] = {"span": self.id, "seconds": round(seconds, 9)}
        if failure is not None:
            more["failure"] = failure
        try:
            told = type(self._asked)() if event is None else event
            recorder.write(told, phase, more)
            if failure is not None and recorder.writer.full:
                recorder.keep([(self._asked, "begin", {"span": self.id})] * (not self._told) + [(told, phase, more)])
        except BaseException:  # the same: an end that did not reach the file is written by whoever catches this
            if not recorder.writer.landed():
                self._recorder = recorder
            raise
