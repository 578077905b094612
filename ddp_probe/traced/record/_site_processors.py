"""What a site adds to the chain by the entry-point group ddp_probe.processors: a job id of its scheduler, the name of a pod.

A processor is asked with (None, method, line) as structlog asks one. It may add, change and remove fields of the event, or drop the line by
raising structlog.DropEvent. The envelope stays, and so do the lines that say how a process began and ended: without them no verdict is possible.
"""

import sys
from typing import Any, Callable, Dict, MutableMapping, Tuple, Type

from ddp_probe.shared.masking.secrets import mask_value
from ddp_probe.shared.ours import ours
from ddp_probe.shared.schema import ENVELOPE

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
    found = {name: line[name] for name in line if name in _FIXED or given.get(name) is line[name]}
    for name, value in given.items():
        if type(name) is str and name not in _FIXED and name not in found:
            found[name] = _masked(name, value, _DEPTH)
    return found


def _masked(name: str, value: Any, depth: int) -> Any:
    if type(value) is str:
        return mask_value(name, value)
    if type(value) is dict and depth:
        return {key: _masked(key, item, depth - 1) for key, item in value.items() if type(key) is str}
    if type(value) in (list, tuple) and depth:
        return [_masked(name, item, depth - 1) for item in value]
    return value
