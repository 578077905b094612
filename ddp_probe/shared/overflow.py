"""A full stack: how to tell, and how Python up to 3.9 forgets that it was full."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List

# Up to Python 3.9 the interpreter notes in the thread that the stack was full, and forgets it 50 calls further down: until then it raises no further
# RecursionError, and 50 calls further up it aborts with "Cannot recover from stack overflow".
FRAGILE = sys.version_info < (3, 10)
_ROOM = 100
_MORE = 200
_set_limit: List[Callable[[int], None]] = []


def forgotten() -> bool:
    """Let the interpreter forget that our code has filled the stack, and tell whether it has; the caller returns without a further call.

    It forgets when a call ends well below the limit, so one ends while the limit is higher. sys.setrecursionlimit would refuse to restore it.
    """
    ctypes: Any = sys.modules.get("ctypes")
    if not _set_limit and ctypes is not None:
        _set_limit.append(ctypes.PYFUNCTYPE(None)(("Py_SetRecursionLimit", ctypes.pythonapi)))  # With types it would need more room.
    if not _set_limit:
        return False
    limit, set_limit = sys.getrecursionlimit(), _set_limit[0]
    try:
        set_limit(limit + _MORE)
    except RecursionError:  # It had forgotten before; now it has noted it once more, so there is room.
        set_limit(limit + _MORE)
    finally:
        set_limit(limit)
    return True


def crowded(exc: BaseException) -> bool:
    """Tell whether the stack is full here too: the RecursionError was raised few frames below, and many frames are above."""
    tb, depth = BaseException.__dict__["__traceback__"].__get__(exc), 0
    while tb is not None and depth < _ROOM:
        tb, depth = tb.tb_next, depth + 1
    return depth < _ROOM and _is_deep()


def _is_deep() -> bool:
    try:
        # A quarter: calls through C count against the limit as well, and show no frame.
        return sys._getframe(sys.getrecursionlimit() // 4) is not None
    except ValueError:
        return False
