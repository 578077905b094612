"""What every probe is: a begin event before the call, an end or error event after it, nothing in between."""

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

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


class Passed:
    """A call that a line has made so often that it passes unrecorded, unless it fails."""

    __slots__ = ("nth", "site", "through")

    def __init__(self, site: Optional[schema.Site], through: List[schema.Site], nth: int) -> None:
        self.site = site
        self.through = through
        self.nth = nth


class Probe(Watch):
    """One patch target, or a few that belong together.

    A probe says what it sees in `begin` and `end`; it never calls the original, and what it returns goes to the log alone.
    """

    cost = ""
    """What it costs the job, in words; printed in docs/probes.md."""

    often = 100
    """From one line of the job, this many calls are recorded; after that each 2nd, 4th, 8th … hundred, and every failure."""

    def __init__(self, session: "Session") -> None:
        self.session = session
        self._calls: Dict[Tuple[str, str, int], int] = {}

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
        site, through = call_path()
        nth = self._count(call, site)
        if nth > self.often and not _is_milestone(nth, self.often):
            call.note = Passed(site, through, nth)
            return
        event = self._event(call, site, through, nth)
        if event is not None:
            self._begin(call, event)
            self.began(call, call.note)

    def _begin(self, call: Call, event: schema.Event) -> None:
        """Keep the span before its line is written: what interrupts the write may still end it."""
        call.note = Begun(self.session.recorder.span(event), event)
        call.note.span.begin()

    def _count(self, call: Call, site: Optional[schema.Site]) -> int:
        """Count the calls of each line: a data set of many small files goes through torch.load at every sample."""
        key = (str(call.target), site.file if site else "", site.line if site else 0)
        self._calls[key] = self._calls.get(key, 0) + 1
        return self._calls[key]

    def _event(self, call: Call, site: Optional[schema.Site], through: List[schema.Site], nth: int) -> Optional[schema.Event]:
        event = self.begin(call)
        if event is not None:
            event.site, event.through = site, through
            event.nth = nth if nth > self.often else None
        return event

    def began(self, call: Call, begun: Begun) -> None:
        """Do what has to follow the begin event, such as a warning."""

    def after(self, call: Call, result: Any) -> None:
        """Write the end event."""
        if isinstance(call.note, Begun):
            call.note.span.end(self.end(call, call.note, result))

    def error(self, call: Call, exc: BaseException) -> None:
        """Write the error event, also where the caller goes on to swallow the exception."""
        if isinstance(call.note, Passed):
            event = self._event(call, call.note.site, call.note.through, call.note.nth)
            call.note = None
            if event is not None:
                self._begin(call, event)
        if isinstance(call.note, Begun):
            call.note.span.fail(failure(exc), self.failed(call, call.note, exc))


def _is_milestone(nth: int, often: int) -> bool:
    """Tell whether nth is often times a power of two."""
    times, rest = divmod(nth, often)
    return rest == 0 and times & (times - 1) == 0
