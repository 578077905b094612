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


def is_proxy(found: Any) -> bool:
    """Tell whether this is a proxy of wrapt that is not ours."""
    return _PROXY in class_order(type(found)) and type(found) not in (Wrapper, Bound)


def leads_to(found: Any, wrapper: Any) -> bool:
    """Tell whether our wrapper is inside this, however deep."""
    return any(wrapper_in(one) is wrapper for one in walk(found))


def holds(patch_site: PatchSite) -> bool:
    """Tell whether the slot still leads to our wrapper, directly or through somebody else's."""
    found = patch_site.slot.read()
    return found is patch_site.placed or leads_to(found, patch_site.wrapper)


def overwritten_by(patch: Patch) -> Optional[str]:
    """Say what has replaced our wrapper; None if the slot still leads to it, or was never patched."""
    site = patch.patch_site
    if site is None or site.retired or holds(site):
        return None
    found = site.slot.read()
    return "nothing, the attribute is gone" if found is MISSING else describe(found)


def walk(found: Any) -> Iterator[Any]:
    """Yield this and everything it wraps: closures, __wrapped__, proxies, partials and bound methods."""
    todo: List[Any] = [found]
    seen: Set[int] = set()
    while todo and len(seen) < _MOST:
        one = todo.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if wrapper_in(one) is None:
            todo += [inner for inner in _inside(one) if _can_wrap(inner)]


def adopts(found: Any) -> bool:
    """Tell whether this is a proxy or a function whose own __wrapped__ is a retired wrapper of ours."""
    if is_proxy(found):
        return _retired(_wrapped(found))
    return type(found) is types.FunctionType and _retired(found.__dict__.get("__wrapped__"))


def splice(found: Any) -> bool:
    """Replace our retired wrapper by the original in whatever holds it directly; tell whether there was one."""
    if is_proxy(found):
        return _splice_proxy(found)
    if type(found) is not types.FunctionType:
        return False
    done = False
    for cell in found.__closure__ or ():
        held = _content(cell)
        if _retired(held):
            cell.cell_contents = without_us(held)
            done = True
    if _retired(found.__dict__.get("__wrapped__")):
        found.__dict__["__wrapped__"] = without_us(found.__dict__["__wrapped__"])
        done = True
    return done


def _splice_proxy(found: Any) -> bool:
    held = _wrapped(found)
    if not _retired(held):
        return False
    found.__wrapped__ = without_us(held)
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


def _inside(found: Any) -> List[Any]:
    kind = type(found)
    if kind is types.FunctionType:
        return [_content(cell) for cell in found.__closure__ or ()] + [found.__dict__.get("__wrapped__")]
    if kind in (types.MethodType, classmethod, staticmethod):
        return [found.__func__]
    if kind is functools.partial:
        return [found.func]
    if is_proxy(found):
        return [_wrapped(found)]
    return _attributes(found)


def _attributes(found: Any) -> List[Any]:
    try:
        held = object.__getattribute__(found, "__dict__")
    except ours(AttributeError):
        return []
    return list(held.values()) if type(held) is dict else []


def _can_wrap(inner: Any) -> bool:
    """Keep the walk to callables; data, modules and classes lead nowhere."""
    return type(inner) in (classmethod, staticmethod) or (callable(inner) and not is_class(inner))
