"""What every probe is: a begin event before the call, an end or error event after it, nothing in between."""

from typing import TYPE_CHECKING, Any, Optional

from ddp_probe import schema
from ddp_probe.facts.call_site import call_path
from ddp_probe.facts.failure import failure
from ddp_probe.patching import Call, Watch
from ddp_probe.record import Span

if TYPE_CHECKING:
    from ddp_probe.probes._session import Session


class Begun:
    """What a probe keeps from begin to end: the span, the event that was written, and room for a note."""

    __slots__ = ("event", "note", "span")

    def __init__(self, span: Span, event: schema.Event) -> None:
        self.span = span
        self.event = event
        self.note: Any = None


class Probe(Watch):
    """One patch target, or a few that belong together.

    A probe says what it sees in `begin` and `end`; it never calls the original, and what it returns goes to the log alone.
    """

    cost = ""
    """What it costs the job, in words; printed in docs/probes.md."""

    def __init__(self, session: "Session") -> None:
        self.session = session

    def begin(self, call: Call) -> Optional[schema.Event]:
        """Return what is known before the call, or None to let it pass unrecorded."""
        raise NotImplementedError

    def end(self, call: Call, begun: Begun, result: Any) -> Optional[schema.Event]:
        """Return what is known after the call."""
        return None

    def failed(self, call: Call, begun: Begun, exc: BaseException) -> Optional[schema.Event]:
        """Return what is known after the call has raised; the exception itself is recorded anyway."""
        return None

    def before(self, call: Call) -> None:
        """Write the begin event, so that it is on disk before a call that may hang or kill."""
        event = self.begin(call)
        if event is None:
            return
        event.site, event.through = call_path()
        call.note = Begun(self.session.recorder.begin(event), event)
        self.began(call, call.note)

    def began(self, call: Call, begun: Begun) -> None:
        """Do what has to follow the begin event, such as a warning."""

    def after(self, call: Call, result: Any) -> None:
        """Write the end event."""
        if isinstance(call.note, Begun):
            call.note.span.end(self.end(call, call.note, result))

    def error(self, call: Call, exc: BaseException) -> None:
        """Write the error event, also where the caller goes on to swallow the exception."""
        if isinstance(call.note, Begun):
            call.note.span.fail(failure(exc), self.failed(call, call.note, exc))
