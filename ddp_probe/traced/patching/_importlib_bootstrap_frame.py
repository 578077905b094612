"""The one function of ours that stays on the stack while an original runs, and that removes itself from the traceback of an exception.

`warnings.warn(stacklevel=2)` skips frames whose file name holds both "importlib" and "_bootstrap" (CPython, all versions), and counts all others.
This file's name holds both, so that a warning of torch points at the same line of the job as without the probe.
"""

from typing import Any, List, Optional

from ddp_probe.shared.ours import is_a_handlers_overflow
from ddp_probe.shared.overflow import FRAGILE, forgotten
from ddp_probe.traced.patching.changes import Plan
from ddp_probe.traced.patching.dispatch import Shown, after, before, cut_short, raised
from ddp_probe.traced.patching.frames import shed


def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: C901, PLR0912, PLR0915  # each part in a separate function would be one more frame
    """Call the original once, or as often as an override wants; the only frame of ours on the stack while it runs.

    Anything else that our part raises comes from a signal handler of the job: it passes, and the observers that saw the begin see an end.
    """
    try:
        wrapped = self._self_original
        shown: List[Shown] = []
        plan: Optional[Plan] = None
        watched = False
        try:
            watched = before(self, args, kwargs, shown)
        except RecursionError as exc:  # No room for us on this stack; the job's call may still fit.
            if is_a_handlers_overflow(exc):
                cut_short(shown, exc)
                raise
            if FRAGILE and not forgotten():
                raise
        except BaseException as exc:
            cut_short(shown, exc)
            raise
        try:
            if not watched or not self._self_patch_site.overrides:
                result = wrapped(*args, **kwargs)
            else:
                plan = Plan(self, args, kwargs)
                plan.prepare()
                while not plan.over:
                    try:
                        result = wrapped(*plan.args, **plan.kwargs)
                    except BaseException as exc:
                        if plan.raised(exc):
                            continue  # The next attempt is outside this clause: its exception is not linked to this one.
                        raise
                    plan.returned(result)
                result = plan.finish()
        except BaseException as exc:
            try:  # contextlib.suppress needs a frame, and there may be no room for one.
                if plan is not None:
                    plan.rollback()
                if watched:
                    raised(shown, exc)
            except RecursionError as other:
                if is_a_handlers_overflow(other):
                    cut_short(shown, other)
                    raise
            except BaseException as other:
                cut_short(shown, other)
                raise
            raise
        if not watched:
            return result
        try:
            after(shown, result)
        except RecursionError as exc:
            if is_a_handlers_overflow(exc):
                cut_short(shown, exc)
                raise
            if FRAGILE and not forgotten():
                raise
        except BaseException as exc:
            cut_short(shown, exc)
            raise
        return result
    except BaseException as exc:
        try:
            shed(exc)
        except RecursionError as other:
            if is_a_handlers_overflow(other):
                raise
        raise
