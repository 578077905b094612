"""Which frames are ours, and tracebacks without them."""

import builtins
import os
import sys
from types import CodeType, TracebackType
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from ddp_probe.shared.ours import is_the_jobs, traceback_of

# Taken from a code object and not from __file__: both sides of the comparison are then spelled alike.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname((lambda: None).__code__.co_filename))) + os.sep
_GROUP: Any = getattr(builtins, "BaseExceptionGroup", None)
_LINKS = ("__traceback__", "__cause__", "__context__", "__suppress_context__")


def is_our_frame(code: CodeType) -> bool:
    """Tell whether the code belongs to a file of this package."""
    return code.co_filename.startswith(_PACKAGE)


def clean_traceback(tb: Optional[TracebackType], came: bool = False) -> Optional[TracebackType]:
    """Unlink our frames and return the new head. One that ends in our code is a fault of ours and stays whole, unless it came from elsewhere."""
    entries = _entries(tb)
    if not entries or (is_our_frame(entries[-1].tb_frame.f_code) and not came):
        return tb
    theirs: List[Any] = [entry for entry in entries if not is_our_frame(entry.tb_frame.f_code)]
    for entry, following in zip(theirs, [*theirs[1:], None]):
        if entry.tb_next is not following:
            entry.tb_next = following
    return theirs[0] if theirs else None


def clean_exception(exc: Optional[BaseException]) -> None:
    """Unlink our frames from the exception, its causes, its contexts and its group; cycles are tolerated."""
    seen: Set[int] = set()
    todo: List[Optional[BaseException]] = [exc]
    while todo:
        linked = todo.pop()
        if linked is None or id(linked) in seen:
            continue
        seen.add(id(linked))
        held = links(linked)
        _put_traceback(linked, clean_traceback(held["__traceback__"], _came_from_outside(linked)))
        todo += [held["__cause__"], held["__context__"]]
        todo += _members(linked)


def _came_from_outside(exc: BaseException) -> bool:
    """Tell whether an exception that was raised in our code came from elsewhere: Ctrl-C has no frame of its own."""
    return not issubclass(type(exc), Exception) or is_the_jobs(exc)


def links(exc: BaseException) -> Dict[str, Any]:
    """Return an exception's traceback, cause and context, past what its class may make of these attributes."""
    return {name: vars(BaseException)[name].__get__(exc) for name in _LINKS}


def _entries(tb: Optional[TracebackType]) -> List[TracebackType]:
    entries: List[TracebackType] = []
    while tb is not None:
        entries.append(tb)
        tb = tb.tb_next
    return entries


def _members(exc: BaseException) -> Tuple[BaseException, ...]:
    return vars(_GROUP)["exceptions"].__get__(exc) if _GROUP is not None and issubclass(type(exc), _GROUP) else ()


def _put_traceback(exc: BaseException, tb: Optional[TracebackType]) -> None:
    if traceback_of(exc) is not tb:
        put_link(exc, "__traceback__", tb)


def put_link(exc: BaseException, name: str, value: Any) -> None:
    """Set one of them, past the class's own __setattr__ and properties: a frozen dataclass can be an exception."""
    vars(BaseException)[name].__set__(exc, value)


# Removes the wrapper's own frame from a traceback while the exception leaves it: a job that prints what it caught sees only its own frames.
#
# From Python 3.11 on a bare `raise` goes on with the exception's `__traceback__`. Up to 3.10 it goes on with a copy that only PyErr_SetExcInfo, a
# documented function of the C API, can change; ctypes reaches it, and torch has imported ctypes. If nobody has, the frame stays.

_BY_ATTRIBUTE = sys.version_info >= (3, 11)
# The file of the frame between the job's call and the original; any other frame of ours in a traceback is a fault of ours, and stays.
_BETWEEN = os.path.join(os.path.dirname((lambda: None).__code__.co_filename), "_importlib_bootstrap_frame.py")
_set: List[Callable[..., None]] = []


def shed(exc: BaseException, code: Optional[CodeType] = None) -> None:
    """Drop our frames, and those of this code, from the traceback's beginning; call this in the except clause that raises the exception again."""
    whole = tb = traceback_of(exc)
    while tb is not None and (tb.tb_frame.f_code.co_filename == _BETWEEN or tb.tb_frame.f_code is code):
        tb = tb.tb_next
    if tb is not None and is_our_frame(tb.tb_frame.f_code):
        if not _came_from_outside(exc):
            return
        clean_exception(exc)
        tb = traceback_of(exc)
    if tb is whole:
        return
    put_link(exc, "__traceback__", tb)
    if not _BY_ATTRIBUTE:
        _go_on_with(exc, tb)


def _go_on_with(exc: BaseException, tb: Optional[TracebackType]) -> None:
    ctypes: Any = sys.modules.get("ctypes")
    if ctypes is None:
        return
    if not _set:  # Prototypes of our own: those of ctypes.pythonapi are shared with the job. By address: py_object asks a value for its __class__.
        held = ctypes.c_void_p
        _set.append(ctypes.PYFUNCTYPE(None, held)(("Py_IncRef", ctypes.pythonapi)))
        _set.append(ctypes.PYFUNCTYPE(None, held, held, held)(("PyErr_SetExcInfo", ctypes.pythonapi)))
    take, put = _set
    for part in (type(exc), exc, tb):
        take(id(part))  # PyErr_SetExcInfo keeps the references that it is given.
    put(id(type(exc)), id(exc), id(tb))
