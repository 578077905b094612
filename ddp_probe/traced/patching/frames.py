"""Which frames are ours, and tracebacks without them."""

import builtins
import os
from types import CodeType, TracebackType
from typing import Any, Dict, List, Optional, Set, Tuple

from ddp_probe.shared.ours import traceback_of

# Taken from a code object and not from __file__: both sides of the comparison are then spelled alike.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname((lambda: None).__code__.co_filename))) + os.sep
_GROUP: Any = getattr(builtins, "BaseExceptionGroup", None)
_LINKS = ("__traceback__", "__cause__", "__context__", "__suppress_context__")


def is_our_frame(code: CodeType) -> bool:
    """Tell whether the code belongs to a file of this package."""
    return code.co_filename.startswith(_PACKAGE)


def clean_traceback(tb: Optional[TracebackType]) -> Optional[TracebackType]:
    """Unlink our frames and return the new head. A traceback that ends in our own code is a fault of ours and stays whole."""
    entries = _entries(tb)
    if not entries or is_our_frame(entries[-1].tb_frame.f_code):
        return tb
    theirs = [entry for entry in entries if not is_our_frame(entry.tb_frame.f_code)]
    for entry, following in zip(theirs, theirs[1:]):
        if entry.tb_next is not following:
            entry.tb_next = following
    return theirs[0]


def clean_exception(exc: Optional[BaseException]) -> None:
    """Unlink our frames from the exception, its causes, its contexts and its group; cycles are tolerated."""
    seen: Set[int] = set()
    todo: List[Optional[BaseException]] = [exc]
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        held = links(one)
        _put_traceback(one, clean_traceback(held["__traceback__"]))
        todo += [held["__cause__"], held["__context__"]]
        todo += _members(one)


def links(exc: BaseException) -> Dict[str, Any]:
    """Return an exception's traceback, cause and context, past what its class may make of these attributes."""
    return {name: vars(BaseException)[name].__get__(exc) for name in _LINKS}


def _entries(tb: Optional[TracebackType]) -> List[TracebackType]:
    found: List[TracebackType] = []
    while tb is not None:
        found.append(tb)
        tb = tb.tb_next
    return found


def _members(exc: BaseException) -> Tuple[BaseException, ...]:
    return vars(_GROUP)["exceptions"].__get__(exc) if _GROUP is not None and issubclass(type(exc), _GROUP) else ()


def _put_traceback(exc: BaseException, tb: Optional[TracebackType]) -> None:
    if traceback_of(exc) is not tb:
        put_link(exc, "__traceback__", tb)


def put_link(exc: BaseException, name: str, value: Any) -> None:
    """Set one of them, past the class's own __setattr__ and properties: a frozen dataclass can be an exception."""
    vars(BaseException)[name].__set__(exc, value)
