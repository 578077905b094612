"""What one line of a file consists of: the clocks, the process, the event's own fields, as JSON.

docs/decisions/0020 says why no logging library does this.
"""

import threading
import time
from typing import Any, Dict, List

from ddp_probe import schema
from ddp_probe.schema import ENVELOPE

from ._json import fields, render

_second: List[Any] = [-1, ""]


def line(event: schema.Event, envelope: Dict[str, Any]) -> bytes:
    """Return a whole line; ``envelope`` is a dict of this line's own."""
    _stamp(envelope)
    return render(_flatten(event, envelope)) + b"\n"


def _stamp(envelope: Dict[str, Any]) -> None:
    if "ts" not in envelope:  # a line that is written later has it already
        envelope.update(now())
    ident = threading.get_ident()
    if ident != threading.main_thread().ident:
        envelope["thread"] = _thread_name(ident)


def now() -> Dict[str, Any]:
    """Return the two clocks as a line carries them."""
    return {"ts": timestamp(time.time_ns()), "mono_ns": time.monotonic_ns()}


def _flatten(event: schema.Event, envelope: Dict[str, Any]) -> Dict[str, Any]:
    """Put the event's own fields after the envelope, and what went wrong last, so that a person can read along."""
    own = fields(event)
    flat = {"event": own.pop("event")}
    failure = envelope.pop("failure", None)
    for name in ENVELOPE:
        if name in envelope:
            flat[name] = envelope.pop(name)
    flat.update(envelope)
    for name, value in own.items():
        flat.setdefault(name, value)
    if failure is not None:
        flat["failure"] = fields(failure)
    return flat


def timestamp(ns: int) -> str:
    """Return Unix time as RFC 3339 in UTC with microseconds; the calendar is worked out once a second."""
    second, rest = divmod(ns, 1000000000)
    known = _second[:]  # one copy: another thread may change the list between two reads
    if known[0] != second:
        known = [second, "%04d-%02d-%02dT%02d:%02d:%02d" % time.gmtime(second)[:6]]
        _second[:] = known
    return "%s.%06dZ" % (known[1], rest // 1000)


def _thread_name(ident: int) -> str:
    # threading.current_thread() would add a thread made by C++ (autograd's) to threading.enumerate(), for good.
    thread = getattr(threading, "_active", {}).get(ident)
    return str(getattr(thread, "name", "")) or "thread-%d" % ident
