"""The one function of ours that stays on the stack while an original runs; an exception that leaves it is told without it.

`warnings.warn(stacklevel=2)` passes over frames whose file name holds both "importlib" and "_bootstrap" (CPython, all versions), and counts
every other. So this file's name holds both, and a warning of torch points at the job's line with the probe as without it.
"""

from typing import Any, List

from ddp_probe.patching._dispatch import begin, cut_short, end, fail
from ddp_probe.patching._importlib_bootstrap_override import overridden
from ddp_probe.patching._shed import shed
from ddp_probe.patching.call import Call
from ddp_probe.patching.guard import FRAGILE


def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: C901  # each part in a function of its own would be a frame more
    """Call the original once; the only frame of ours that stays on the stack while it runs.

    Whatever else our own part raises was raised in it by a signal handler of the job's: it passes, and what has begun is told to have ended.
    """
    wrapped = self._self_original
    calls: List[Call] = []
    watched = False
    try:
        watched = begin(self, args, kwargs, calls)
    except RecursionError:  # No room for us on this stack; the job's own call may still fit.
        if FRAGILE:
            raise
    except BaseException as exc:
        cut_short(calls, exc)
        raise
    try:
        result = wrapped(*args, **kwargs) if not watched or not self._self_patch_site.overrides else overridden(self, wrapped, args, kwargs)
    except BaseException as exc:
        try:  # contextlib.suppress needs a frame, and there may be no room for one
            if watched:
                fail(calls, exc)
            shed(exc)
        except RecursionError:
            pass
        except BaseException as other:
            cut_short(calls, other)
            raise
        raise
    if not watched:
        return result
    try:
        end(calls, result)
    except RecursionError:
        if FRAGILE:
            raise
    except BaseException as exc:
        cut_short(calls, exc)
        raise
    return result
