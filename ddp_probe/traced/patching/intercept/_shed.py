"""Removes the wrapper's own frame from a traceback while the exception leaves it: a job that prints what it caught sees only its own frames.

From Python 3.11 on a bare `raise` goes on with the exception's `__traceback__`. Up to 3.10 it goes on with a copy that only PyErr_SetExcInfo, a
documented function of the C API, can change; ctypes reaches it, and torch has imported ctypes. If nobody has, the frame stays.
"""

import os
import sys
from types import CodeType, TracebackType
from typing import Any, Callable, List, Optional

from ddp_probe.shared.ours import traceback_of
from ddp_probe.traced.patching.frames import is_our_frame, put_link

_BY_ATTRIBUTE = sys.version_info >= (3, 11)
# The file of the frame between the job's call and the original; any other frame of ours in a traceback is a fault of ours, and stays.
_BETWEEN = os.path.join(os.path.dirname((lambda: None).__code__.co_filename), "_importlib_bootstrap_frame.py")
_set: List[Callable[..., None]] = []


def shed(exc: BaseException, code: Optional[CodeType] = None) -> None:
    """Drop our frames, and those of this code, from the traceback's beginning; call this in the except clause that raises the exception again."""
    whole = tb = traceback_of(exc)
    while tb is not None and (tb.tb_frame.f_code.co_filename == _BETWEEN or tb.tb_frame.f_code is code):
        tb = tb.tb_next
    if tb is whole or (tb is not None and is_our_frame(tb.tb_frame.f_code)):
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
    for one in (type(exc), exc, tb):
        take(id(one))  # PyErr_SetExcInfo keeps the references that it is given.
    put(id(type(exc)), id(exc), id(tb))
