"""The structlog chain: stamp, flatten, render. Imported at the first line, as structlog costs tens of milliseconds and brings rich.

Nothing here calls structlog.configure: the global configuration belongs to the job.
"""

import threading
import time
from typing import Any, Dict, List, MutableMapping

import structlog

from ._json import fields, render

ENVELOPE = ("phase", "ts", "mono_ns", "seq", "rank", "local_rank", "world_size", "host", "pid", "run", "span", "thread", "seconds")
_second: List[Any] = [-1, ""]


def logger(sink: Any, envelope: Dict[str, Any]) -> Any:
    """Return a bound logger that hands whole lines to ``sink.info``; nothing of it is looked up again at a call."""
    proxy = structlog.wrap_logger(
        sink,
        processors=[_stamp, _flatten, _render],
        wrapper_class=structlog.make_filtering_bound_logger(0),
        context_class=dict,
        cache_logger_on_first_use=True,
    )
    return proxy.bind(**envelope)


def _stamp(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if "ts" not in line:  # a line that is written later has it already
        line.update(now())
    ident = threading.get_ident()
    if ident != threading.main_thread().ident:
        line["thread"] = _thread_name(ident)
    return line


def now() -> Dict[str, Any]:
    """Return the two clocks as a line carries them."""
    return {"ts": timestamp(time.time_ns()), "mono_ns": time.monotonic_ns()}


def _flatten(_: Any, __: str, line: MutableMapping[str, Any]) -> Dict[str, Any]:
    """Put the event's own fields after the envelope, and what went wrong last, so that a person can read along."""
    own = fields(line.pop("event"))
    flat = {"event": own.pop("event")}
    for name in ENVELOPE:
        if name in line:
            flat[name] = line.pop(name)
    failure = line.pop("failure", None)
    flat.update(line)
    for name, value in own.items():
        flat.setdefault(name, value)
    if failure is not None:
        flat["failure"] = fields(failure)
    return flat


def _render(_: Any, __: str, line: MutableMapping[str, Any]) -> bytes:
    return render(line if type(line) is dict else dict(line)) + b"\n"


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
