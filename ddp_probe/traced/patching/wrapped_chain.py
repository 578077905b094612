"""Finds our wrapper inside what somebody has put around it or over it, and takes ours out without touching theirs."""

import functools
import types
from typing import Any, Iterator, List, Optional, Set

import wrapt

from ddp_probe.shared.ours import ours
from ddp_probe.traced.patching.patch import Patch, PatchSite
from ddp_probe.traced.patching.slot import MISSING, class_order, describe, is_class
from ddp_probe.traced.patching.wrapper import Bound, Wrapper, without_us, wrapper_in

# Below every proxy class of wrapt in every version; its public name moved between 1.x and 2.x.
_PROXY: Any = wrapt.FunctionWrapper.__mro__[-2]
_MOST = 200


def is_proxy(value: Any) -> bool:
    """Tell whether this is a proxy of wrapt that is not ours."""
    return _PROXY in class_order(type(value)) and type(value) not in (Wrapper, Bound)


def leads_to(value: Any, wrapper: Any) -> bool:
    """Tell whether our wrapper is inside this, however deep."""
    return any(wrapper_in(inner) is wrapper for inner in walk(value))


def holds(patch_site: PatchSite) -> bool:
    """Tell whether the slot still leads to our wrapper, directly or through somebody else's."""
    current = patch_site.slot.read()
    return current is patch_site.placed or leads_to(current, patch_site.wrapper)


def overwritten_by(patch: Patch) -> Optional[str]:
    """Say what has replaced our wrapper; None if the slot still leads to it, or was never patched."""
    site = patch.patch_site
    if site is None or site.retired or holds(site):
        return None
    current = site.slot.read()
    return "nothing, the attribute is gone" if current is MISSING else describe(current)


def walk(value: Any) -> Iterator[Any]:
    """Yield this and everything it wraps: closures, __wrapped__, proxies, partials and bound methods."""
    todo: List[Any] = [value]
    seen: Set[int] = set()
    while todo and len(seen) < _MOST:
        current = todo.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if wrapper_in(current) is None:
            todo += [inner for inner in _inside(current) if _can_wrap(inner)]


def adopts(value: Any) -> bool:
    """Tell whether this is a proxy or a function whose own __wrapped__ is a retired wrapper of ours."""
    if is_proxy(value):
        return _retired(_wrapped(value))
    return type(value) is types.FunctionType and _retired(value.__dict__.get("__wrapped__"))


def splice(value: Any) -> bool:
    """Replace our retired wrapper by the original in whatever holds it directly; tell whether there was one."""
    if is_proxy(value):
        return _splice_proxy(value)
    if type(value) is not types.FunctionType:
        return False
    done = False
    for cell in value.__closure__ or ():
        held = _content(cell)
        if _retired(held):
            cell.cell_contents = without_us(held)
            done = True
    if _retired(value.__dict__.get("__wrapped__")):
        value.__dict__["__wrapped__"] = without_us(value.__dict__["__wrapped__"])
        done = True
    return done


def _splice_proxy(proxy: Any) -> bool:
    held = _wrapped(proxy)
    if not _retired(held):
        return False
    proxy.__wrapped__ = without_us(held)
    return True


def _retired(held: Any) -> bool:
    wrapper = wrapper_in(held)
    return wrapper is not None and wrapper._self_patch_site.retired


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ours(ValueError):  # Empty: the enclosing function has not assigned the name yet, or has deleted it.
        return None


def _wrapped(proxy: Any) -> Any:
    try:
        return proxy.__wrapped__
    except ours(Exception):  # A proxy that does not wrap anything yet.
        return None


def _inside(value: Any) -> List[Any]:
    kind = type(value)
    if kind is types.FunctionType:
        return [_content(cell) for cell in value.__closure__ or ()] + [value.__dict__.get("__wrapped__")]
    if kind in (types.MethodType, classmethod, staticmethod):
        return [value.__func__]
    if kind is functools.partial:
        return [value.func]
    if is_proxy(value):
        return [_wrapped(value)]
    return _attributes(value)


def _attributes(value: Any) -> List[Any]:
    try:
        held = object.__getattribute__(value, "__dict__")
    except ours(AttributeError):
        return []
    return list(held.values()) if type(held) is dict else []


def _can_wrap(inner: Any) -> bool:
    """Keep the walk to callables; data, modules and classes lead nowhere."""
    return type(inner) in (classmethod, staticmethod) or (callable(inner) and not is_class(inner))
