"""The structlog chain of every line: stamp, name the thread, order, ask the site's processors, number, render; one sink at its end."""

import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, MutableMapping, Tuple, Type

from ddp_probe.shared import schema, settings
from ddp_probe.shared.masks import mask_value
from ddp_probe.shared.ours import ours
from ddp_probe.shared.schema import ENVELOPE
from ddp_probe.traced.record.render import fields, render, rows, through
from ddp_probe.traced.record.structlog_copy import copy

if TYPE_CHECKING:
    import structlog
else:
    structlog = copy()

OURS = "ddp_probe: "
"""What stands before each text of ours on stderr."""
_FIXED = frozenset(("event", *ENVELOPE))
_KEPT = ("process.start", "process.end", "launcher.start", "launcher.end", "probe.full", "probe.fault")
_DEPTH = 4

_Line = MutableMapping[str, Any]
added: Dict[str, Callable[..., Any]] = {}
_failed: Dict[str, Callable[[BaseException], None]] = {}


def add(name: str, processor: Callable[..., Any], failed: Callable[[BaseException], None]) -> None:
    """Ask this processor from here on; if it raises, it is switched off, and ``failed`` is told."""
    added[name], _failed[name] = processor, failed


def asked(method: str, line: _Line, drop: Type[BaseException]) -> _Line:
    """Return the line as the processors leave it; raise ``drop`` if one drops it."""
    for name, processor in list(added.items()):
        try:
            given = processor(None, method, dict(line))
            if type(given) is not dict:
                raise TypeError("the processor %s returned %s, not a dict" % (name, type(given).__name__))
        except ours(*_drop_events()):
            if line["event"] not in _KEPT:
                raise drop from None
        except ours(Exception, SystemExit) as exc:
            added.pop(name, None)
            _failed[name](exc)
        else:
            line = _merged(line, given)
    return line


def _drop_events() -> Tuple[Type[BaseException], ...]:
    """Return structlog's DropEvent as the site knows it: its structlog is not our copy, so the class is another."""
    theirs: Any = sys.modules.get("structlog.exceptions")
    return () if theirs is None else (theirs.DropEvent,)


def _merged(line: _Line, given: Dict[Any, Any]) -> _Line:
    """Return the envelope as it was, and the rest as the site wants it, with secrets masked in what the site has written."""
    fields = {name: line[name] for name in line if name in _FIXED or given.get(name) is line[name]}
    for name, value in given.items():
        if type(name) is str and name not in _FIXED and name not in fields:
            fields[name] = _masked(name, value, _DEPTH)
    return fields


def _masked(name: str, value: Any, depth: int) -> Any:
    if type(value) is str:
        return mask_value(name, value)
    if type(value) is dict and depth:
        return {key: _masked(key, item, depth - 1) for key, item in value.items() if type(key) is str}
    if type(value) in (list, tuple) and depth:
        return [_masked(name, item, depth - 1) for item in value]
    return value


# The loggers differ in their last steps alone: JSON for the log, text for stderr, rows for a model's list of parameters. structlog is a copy of the
# probe's own (structlog_copy.py), so the job's configuration and this one never meet.

_second: List[Any] = [-1, ""]


class LineLogger(structlog.BoundLoggerBase):
    """A logger whose context is the envelope; it hands whole lines to its sink."""

    def line(self, event: schema.Event, phase: str, more: Dict[str, Any]) -> bool:
        """Write one line, and tell whether no processor has dropped it; ``more`` is what the envelope gains for this line alone."""
        values = {"phase": phase, "seq": -1, **more}
        for name, value in fields(event).items():
            if name not in values and name not in self._context:
                values[name] = value
        return self._proxy_to_logger("write", values.pop("event"), **values) is not None


def line_logger(sink: Any, envelope: Dict[str, Any]) -> LineLogger:
    """Return the logger of a process's file; ``sink`` takes whole lines and has their ``numbers``."""
    logger: LineLogger = _wrapped(sink, _STRICT_LINES if settings.get(settings.STRICT) else _LINES, LineLogger).bind(**envelope)
    return logger


def text_logger(sink: Any) -> Any:
    """Return a logger that hands each text to its sink as one line."""
    return _wrapped(sink, [_text], structlog.BoundLogger).bind()


def rows_logger(sink: Any) -> Any:
    """Return a logger that hands a list to its sink as one JSON array, a row a line, so that two ranks' lists can be compared by diff."""
    return _wrapped(sink, [_rows], structlog.BoundLogger).bind()


@contextlib.contextmanager
def captured() -> Iterator[List[Any]]:
    """Collect lines as dicts in place of writing them; for the tests of people who write a probe. The numbers go on where they were."""
    capture: Any = structlog.testing.LogCapture()
    kept = [list(processors) for processors in (_LINES, _STRICT_LINES)]
    for processors in (_LINES, _STRICT_LINES):
        processors[:] = [_stamp, _name_thread, _order, capture]
    try:
        yield capture.entries
    finally:
        _LINES[:], _STRICT_LINES[:] = kept


def _wrapped(sink: Any, processors: List[Any], kind: Any) -> Any:
    return structlog.wrap_logger(sink, processors=processors, wrapper_class=kind, context_class=dict)


def now() -> Dict[str, Any]:
    """Return the two clocks as a line carries them."""
    return {"ts": timestamp(time.time_ns()), "mono_ns": time.monotonic_ns()}


def timestamp(ns: int) -> str:
    """Return Unix time as RFC 3339 in UTC with microseconds; the calendar is worked out once a second."""
    second, rest = divmod(ns, 1000000000)
    cached = _second[:]  # one copy: another thread may change the list between two reads
    if cached[0] != second:
        cached = [second, "%04d-%02d-%02dT%02d:%02d:%02d" % time.gmtime(second)[:6]]
        _second[:] = cached
    return "%s.%06dZ" % (cached[1], rest // 1000)


# --- the processors -------------------------------------------------------------------------------------------------


def _stamp(_: Any, __: str, line: _Line) -> _Line:
    if "ts" not in line:  # a line that is written later has it already
        line.update(now())
    return line


def _name_thread(_: Any, __: str, line: _Line) -> _Line:
    ident = threading.get_ident()
    if ident != threading.main_thread().ident:
        line["thread"] = _thread_name(ident)
    return line


def _thread_name(ident: int) -> str:
    # threading.current_thread() would add a thread made by C++ (autograd's) to threading.enumerate(), for good.
    thread = getattr(threading, "_active", {}).get(ident)
    return str(getattr(thread, "name", "")) or "thread-%d" % ident


def _order(_: Any, __: str, line: _Line) -> _Line:
    """Put the event's own fields after the envelope, and what went wrong last, so that a person can read along."""
    flat = {"event": line.pop("event")}
    failure = line.pop("failure") if isinstance(line.get("failure"), schema.Failure) else None
    for name in ENVELOPE:
        if name in line:
            flat[name] = line.pop(name)
    flat.update(line)
    if failure is not None:
        flat["failure"] = fields(failure)
    return flat


def _check(_: Any, __: str, line: _Line) -> _Line:
    from ddp_probe.traced.record.render import check

    check(render(dict(line)))
    return line


def _ask_site(_: Any, method: str, line: _Line) -> _Line:
    return asked(method, line, structlog.DropEvent) if added else line


def _number(sink: Any, __: str, line: _Line) -> _Line:
    """Number the lines that are written; what a site's processor has dropped leaves no gap."""
    line["seq"] = next(sink.numbers)
    return line


def _render(_: Any, __: str, line: _Line) -> bytes:
    return render(line if type(line) is dict else dict(line)) + b"\n"


def _text(_: Any, __: str, line: _Line) -> bytes:
    return (OURS + through(" ".join(str(line["event"]).split())) + "\n").encode("utf-8", "backslashreplace")


def _rows(_: Any, __: str, line: _Line) -> bytes:
    return rows(line["event"])


_LINES = [_stamp, _name_thread, _order, _ask_site, _number, _render]
_STRICT_LINES = [_stamp, _name_thread, _order, _check, _ask_site, _number, _render]
