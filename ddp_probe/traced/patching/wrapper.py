"""The wrapper: it behaves like the original in every respect, and adds one frame.

Looked up on an instance, it becomes a genuine bound method, so that pickle, deepcopy and weak references treat it as usual.
Only an original that binds in its own way, such as another tool's wrapper, goes through wrapt's binding.
"""

import copy
import importlib
import operator
import sys
import types
from typing import Any, Callable, Optional, Tuple, Union

import wrapt

from ddp_probe.traced.patching._importlib_bootstrap_frame import call
from ddp_probe.traced.patching.call import Target
from ddp_probe.traced.patching.patch import PatchSite
from ddp_probe.traced.patching.slot import MISSING, class_attribute, is_class, namespace

# Untyped on purpose: wrapt has type hints in some versions and none in others.
_Base: Any = wrapt.FunctionWrapper
_BoundBase: Any = wrapt.BoundFunctionWrapper
_INNER: Any = next(vars(kind)["__wrapped__"] for kind in _Base.__mro__ if "__wrapped__" in vars(kind))
_IS_COMPILED = type(_INNER) is types.GetSetDescriptorType
_METHOD_DESCRIPTOR = 1 << 17  # Py_TPFLAGS_METHOD_DESCRIPTOR: binds the way a function does.


class _Like:
    """Hides what wrapt's proxies have and an original does not: __wrapped__, and a repr of their own."""

    __slots__ = ()  # A __dict__ here would hide that of the original.
    # No Python function in between: each call reads it.
    _self_original = property(_INNER.__get__ if _IS_COMPILED else operator.attrgetter("__wrapped__"))

    if _IS_COMPILED:  # wrapt's proxies in pure Python keep what they wrap under this name.

        @property
        def __wrapped__(self) -> Any:
            return self._self_original.__wrapped__  # The original may be a wrapper too; if not, there is no such attribute.

        @__wrapped__.setter
        def __wrapped__(self, value: Any) -> None:
            self._self_original.__wrapped__ = value

        @__wrapped__.deleter
        def __wrapped__(self) -> None:
            del self._self_original.__wrapped__

    def __repr__(self) -> str:
        return repr(self._self_original)


class Bound(_Like, _BoundBase):  # type: ignore[misc]
    """A lookup on a class or an instance of an original that binds in its own way."""

    __call__ = call

    @property
    def _self_patch_site(self) -> PatchSite:
        return self._self_parent._self_patch_site  # type: ignore[no-any-return,unused-ignore]

    def _self_split(self, args: Tuple[Any, ...]) -> Tuple[Any, Tuple[Any, ...]]:
        if self._self_instance is not None:
            return self._self_instance, args
        return (args[0], args[1:]) if args else (None, args)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._self_instance is None:
            return reference(self._self_patch_site.target)
        return self._self_original.__reduce_ex__(protocol)

    def __copy__(self) -> Any:
        return copy.copy(self._self_original)

    def __deepcopy__(self, memo: Any) -> Any:
        return copy.deepcopy(self._self_original, memo)


class Wrapper(_Like, _Base):  # type: ignore[misc]
    """What stands in place of an original."""

    __bound_function_wrapper__ = Bound
    # A comment and no annotation: the class would show its own __annotations__ in place of the original's.
    _self_patch_site = None  # type: Any

    __call__ = call

    def __init__(self, patch_site: PatchSite) -> None:
        super(Wrapper, self).__init__(patch_site.original, _never)  # noqa: UP008 - __class__ below is a property.
        self._self_patch_site = patch_site
        original: Any = patch_site.original
        kind = type(original)
        self._self_plain = bool(kind.__flags__ & _METHOD_DESCRIPTOR) or (kind is Wrapper and original._self_plain)
        self._self_binds = hasattr(kind, "__get__")

    def _self_split(self, args: Tuple[Any, ...]) -> Tuple[Any, Tuple[Any, ...]]:
        return (args[0], args[1:]) if args else (None, args)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if self._self_plain:
            return self if instance is None else types.MethodType(self, instance)
        return super().__get__(instance, owner) if self._self_binds else self

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        # A retired wrapper admits what it is: cloudpickle then asks for __reduce_ex__ and does not pickle the function by value.
        patch_site = self._self_patch_site
        return Wrapper if patch_site is not None and patch_site.retired else self._self_original.__class__

    def __reduce_ex__(self, protocol: Any) -> Union[str, Tuple[Any, ...]]:
        name = lookup(self)
        return name if name is not None else reference(self._self_patch_site.target)

    def __copy__(self) -> "Wrapper":
        return self

    def __deepcopy__(self, memo: Any) -> "Wrapper":
        return self


def _never(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    """Give wrapt the function that it requires; it is never called, as both classes call the original themselves."""
    return wrapped(*args, **kwargs)


def wrapper_in(value: Any) -> Optional[Wrapper]:
    """Return our wrapper if this is one, a binding of one, or a class or static method around one; else None."""
    kind = type(value)
    if kind is Wrapper:
        return value  # type: ignore[no-any-return]
    if kind is Bound:
        return value._self_parent  # type: ignore[no-any-return]
    if kind in (types.MethodType, classmethod, staticmethod) and type(value.__func__) is Wrapper:
        return value.__func__  # type: ignore[no-any-return,unused-ignore]
    return None


def without_us(value: Any) -> Any:
    """Return what would be here if nothing had been patched."""
    wrapper = wrapper_in(value)
    if wrapper is None:
        return value
    patch_site, kind = wrapper._self_patch_site, type(value)
    if kind is Wrapper:
        return patch_site.original
    if kind is Bound:
        return value._self_original
    if kind is types.MethodType:
        return types.MethodType(patch_site.original, value.__self__)
    return patch_site.raw if value is patch_site.placed else kind(patch_site.original)


# Pickles a wrapper as the name of its original, so that unpickling does not need this package.


class _Module:
    """Pickles as an import of the module it names."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[str]]:
        return importlib.import_module, (self.name,)


def reference(target: Target) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
    """Return the reduction that imports the module and walks down to the name."""
    return operator.attrgetter(target.qualname), (_Module(target.module),)


def lookup(value: Any) -> Optional[str]:
    """Return the qualified name under which pickle itself finds this very object, or None."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if type(module) is not str or type(name) is not str:
        return None
    space = namespace(sys.modules.get(module)) or {}
    first, *rest = name.split(".")
    reached = space.get(first, MISSING)
    for part in rest:
        reached = class_attribute(reached, part)[0] if is_class(reached) else MISSING
    if type(reached) is staticmethod:
        reached = reached.__func__
    return name if reached is value else None
