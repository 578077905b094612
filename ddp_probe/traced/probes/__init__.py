"""What watches the job: one file per patch target.

What every probe is: a begin event before the call, an end or error event after it, nothing in between.
"""

from typing import Any, ClassVar, List, Optional, Tuple, Type

from ddp_probe.activation.targets import PROGRAM
from ddp_probe.shared import schema
from ddp_probe.traced.facts.call_site import call_path
from ddp_probe.traced.facts.failure import failure
from ddp_probe.traced.patching import Call, Observer
from ddp_probe.traced.record import Span
from ddp_probe.traced.record.sparse import OFTEN, CallCounts, Line, line_of
from ddp_probe.traced.session import Session


class Begun:
    """What a probe keeps from begin to end: the span, the event that was written, and room for a note."""

    __slots__ = ("event", "note", "span")

    def __init__(self, span: Span, event: schema.Event) -> None:
        self.span = span
        self.event = event
        self.note: Any = None


class Passed:
    """A call that a line has made so often that it passes unrecorded, unless it is among the first that fail."""

    __slots__ = ("key", "nth", "site", "through")

    def __init__(self, key: Line, site: Optional[schema.Site], through: List[schema.Site], nth: int) -> None:
        self.key = key
        self.site = site
        self.through = through
        self.nth = nth


class Probe(Observer):
    """Watches one function of torch or mmengine, or a few related ones, and logs an event before and after each call.

    Its methods `begin`, `end` and `error`, named after the phases of an event, return what to log; it never calls the original. `before`,
    `after` and `raised` are the observer's, and write these events. What it watches and writes, in which processes, and
    what that costs is declared here and in no other file: scripts/render_docs prints from it
    ddp_probe/shared/declared.py and docs/contributing/probes.md.
    `name` is the name of its file.
    """

    targets: ClassVar[Tuple[str, ...]] = ()
    """The calls that it watches, as module:qualname, by the module that defines them: every later alias already is the wrapper."""

    optional: ClassVar[Tuple[str, ...]] = ()
    """Further targets that some versions do not have; nothing is said if one never appears."""

    roles: ClassVar[Tuple[str, ...]] = PROGRAM
    """The parts of a job that it is armed in."""

    events: ClassVar[Tuple[Type[schema.Event], ...]] = ()
    """The events that it writes around a call: begin, then end or error."""

    points: ClassVar[Tuple[Type[schema.Event], ...]] = ()
    """The events that it writes by themselves."""

    states: ClassVar[bool] = False
    """Whether device.state is written before its begin event, and after its end or error event."""

    cost: ClassVar[str] = ""
    """What it costs the job, in words."""

    often: ClassVar[int] = OFTEN
    """From one line of the job, this many calls are recorded; after that each 2nd, 4th, 8th … hundred.

    A failure of the others is recorded if it is one of the first ten of its class, or the 16th, 32nd, 64th … one.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._counts = CallCounts(self.often)
        self.last = ""
        """The last call in words, if the events of other probes tell of it."""

    def forget(self) -> None:
        """Start from nothing: in a child that is watched from here, what was counted and kept is its parent's."""
        self.last = ""
        self._counts.clear()

    def begin(self, call: Call) -> Optional[schema.Event]:
        """Return what is known before the call, or None to let it pass unrecorded."""
        raise NotImplementedError

    def end(self, call: Call, begun: Begun, result: Any) -> Optional[schema.Event]:
        """Return what is known after the call."""
        return None

    def error(self, call: Call, begun: Begun, exc: BaseException) -> Optional[schema.Event]:
        """Return what is known after the call has raised; the exception itself is recorded anyway."""
        return None

    def before(self, call: Call) -> None:
        """Write the begin event, so that it is on disk before a call that may hang or kill."""
        site, through = call_path()
        key = line_of(call.label, site)
        nth = self._counts.count(key)
        if not self._counts.is_written(nth):
            call.note = Passed(key, site, through, nth)
            return
        event = self._event(call, site, through, nth)
        if event is not None:
            self._state(event, "begin")
            self._write(call, event)

    def _write(self, call: Call, event: schema.Event) -> None:
        """Keep the span before its line is written: what interrupts the write may still end it."""
        call.note = Begun(self.session.recorder.span(event), event)
        call.note.span.begin()

    def _event(self, call: Call, site: Optional[schema.Site], through: List[schema.Site], nth: int) -> Optional[schema.Event]:
        event = self.begin(call)
        if event is not None:
            event.site, event.through = site, through
            event.nth = self._counts.many(nth)
        return event

    def after(self, call: Call, result: Any) -> None:
        """Write the end event."""
        if isinstance(call.note, Begun):
            call.note.span.end(self.end(call, call.note, result))
            self._state(call.note.event, "end")

    def raised(self, call: Call, exc: BaseException) -> None:
        """Write the error event, also where the caller goes on to swallow the exception."""
        if isinstance(call.note, Passed):
            if not self._counts.is_failure_written(call.note.key, type(exc)):
                return
            event = self._event(call, call.note.site, call.note.through, call.note.nth)
            call.note = None
            if event is not None:
                self._write(call, event)
        if isinstance(call.note, Begun):
            description = failure(exc)
            call.note.span.error(description, self.error(call, call.note, exc))
            self._state(call.note.event, "error", always="out of memory" in description.message)

    def _state(self, event: schema.Event, phase: str, always: bool = False) -> None:
        if self.states or always:
            self.session.states.note("%s %s" % (event.__struct_config__.tag, phase), always)
