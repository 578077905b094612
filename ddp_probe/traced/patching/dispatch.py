"""Shows one call to its observers: that it begins, and how it ends."""

from typing import Any, Dict, List, Tuple

from ddp_probe.shared.overflow import FRAGILE, crowded
from ddp_probe.traced.patching.call import Call, switch
from ddp_probe.traced.patching.frames import links, put_link
from ddp_probe.traced.patching.guard import guard, here
from ddp_probe.traced.patching.patch import Patch, PatchSite

Shown = Tuple[Patch, Call]
"""An observer that has seen a call begin, and the call as it saw it."""


def before(wrapper: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], shown: List[Shown]) -> bool:
    """Show the call to every observer that wants it. False: there is none, nor an override, and nothing else happens around the original."""
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
            _show(patch, patch_site.call(patch, instance, args, dict(kwargs)), shown)
    for patch, _ in shown:
        if patch.outermost:
            thread.open.add(patch.name)
    return bool(shown or patch_site.overrides)


def _show(patch: Patch, call: Call, shown: List[Shown]) -> None:
    """Show one observer that the call begins, and keep the call unless the observer fails."""
    patch.calls += 1
    shown.append((patch, call))  # First: an observer that is interrupted may have begun.
    if not guard.attempt(patch.name, patch.observer.before, call):
        shown.pop()


def after(shown: List[Shown], result: Any) -> None:
    """Show the result to every observer that saw the call begin."""
    _close(shown)
    for patch, call in shown:
        guard.attempt(patch.name, patch.observer.after, call, result)


def raised(shown: List[Shown], exc: BaseException) -> None:
    """Show the job's exception to every observer that saw the call begin, and leave the exception as it was."""
    linked = links(exc)
    try:
        _close(shown)
        if FRAGILE and issubclass(type(exc), RecursionError) and crowded(exc):
            return
        for patch, call in shown:
            guard.attempt(patch.name, patch.observer.raised, call, exc)
    finally:
        _put_back(exc, linked)


def cut_short(shown: List[Shown], exc: BaseException) -> None:
    """Show each observer that still waits for an end what the job raised while our code ran."""
    _close(shown)
    for patch, call in shown:
        guard.attempt(patch.name, patch.observer.raised, call, exc)


def _close(shown: List[Shown]) -> None:
    for patch, _ in shown:
        if patch.outermost:
            here.thread.open.discard(patch.name)


def _put_back(exc: BaseException, linked: Dict[str, Any]) -> None:
    now = links(exc)
    for name, value in linked.items():
        if now[name] is not value:
            put_link(exc, name, value)  # The cause sets the flag that is put back last.
