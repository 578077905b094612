"""Around one call: who wants to see it, and the same for its end and its failure."""

from typing import TYPE_CHECKING, Any, Dict, List, Tuple

from .call import Call
from .guard import FRAGILE, crowded, guard, here
from .switch import switch

if TYPE_CHECKING:
    from .patch import PatchSite


def begin(wrapper: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], calls: List[Call]) -> bool:
    """Show the call to every watch that wants it. False: nobody does, no remedy either, and the original is called with nothing else."""
    patch_site: PatchSite = wrapper._self_patch_site
    if patch_site.retired:
        patch_site.count_stale()
        return False
    thread = here.thread
    if thread.busy or not (switch.on or patch_site.always):
        return False
    instance = None
    if patch_site.bound:
        instance, args = wrapper._self_split(args)
    for patch in patch_site.patches:
        if patch.name not in thread.open:
            _show(Call(patch_site, patch, instance, args, dict(kwargs)), calls)
    for call in calls:
        if call.patch.outermost:
            thread.open.add(call.patch.name)
    return bool(calls or patch_site.overrides)


def _show(call: Call, calls: List[Call]) -> None:
    """Show one watch that the call begins, and keep the call if the watch is to see its end."""
    call.patch.calls += 1
    calls.append(call)  # First: a watch that is interrupted may have begun.
    if not guard.attempt(call.patch.name, call.patch.observer.before, call):
        calls.pop()


def end(calls: List[Call], result: Any) -> None:
    """Show the result to every watch that saw the call begin."""
    _close(calls)
    for call in calls:
        patch = call.patch
        guard.attempt(patch.name, patch.observer.after, call, result)


def fail(calls: List[Call], exc: BaseException) -> None:
    """Show the job's exception to every watch that saw the call begin, and leave it as it was."""
    before = _chain(exc)
    try:
        _close(calls)
        if FRAGILE and isinstance(exc, RecursionError) and crowded(exc):
            return
        for call in calls:
            patch = call.patch
            guard.attempt(patch.name, patch.observer.error, call, exc)
    finally:
        _put_back(exc, before)


def cut_short(calls: List[Call], exc: BaseException) -> None:
    """Tell each watch that still waits for an end that there is another one: what the job raised while our own code ran."""
    _close(calls)
    for call in calls:
        guard.attempt(call.patch.name, call.patch.observer.error, call, exc)


def _close(calls: List[Call]) -> None:
    for call in calls:
        if call.patch.outermost:
            here.thread.open.discard(call.patch.name)


def _chain(exc: BaseException) -> Tuple[Any, ...]:
    return exc.__traceback__, exc.__cause__, exc.__context__, exc.__suppress_context__


def _put_back(exc: BaseException, before: Tuple[Any, ...]) -> None:
    if all(now is then for now, then in zip(_chain(exc), before)):
        return
    for name, value in zip(("__traceback__", "__cause__", "__context__", "__suppress_context__"), before):
        # Past the class's own __setattr__: a frozen dataclass can be an exception.
        BaseException.__setattr__(exc, name, value)
