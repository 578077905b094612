"""The one function of ours that stays on the stack while an original runs; an exception that leaves it is told without it.

`warnings.warn(stacklevel=2)` passes over frames whose file name holds both "importlib" and "_bootstrap" (CPython, all versions), and counts
every other. So this file's name holds both, and a warning of torch points at the job's line with the probe as without it.
"""

from typing import Any

from ddp_probe.patching._importlib_bootstrap_mended import mended
from ddp_probe.patching._shed import shed
from ddp_probe.patching._visit import begin, end, fail
from ddp_probe.patching.guard import FRAGILE


def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call the original once; the only frame of ours that stays on the stack while it runs."""
    wrapped = self._self_original
    try:
        calls = begin(self, args, kwargs)
    except RecursionError:  # No room for us on this stack; the job's own call may still fit.
        if FRAGILE:
            raise
        calls = None
    try:
        result = wrapped(*args, **kwargs) if calls is None or not self._self_seat.mends else mended(self, wrapped, args, kwargs)
    except BaseException as exc:
        try:  # contextlib.suppress needs a frame, and there may be no room for one
            if calls is not None:
                fail(calls, exc)
            shed(exc)
        except RecursionError:
            pass
        raise
    if calls is None:
        return result
    try:
        end(calls, result)
    except RecursionError:
        if FRAGILE:
            raise
    return result
