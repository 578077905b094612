"""Reads classes through type's own descriptors, because a metaclass can run the job's code on attribute access."""

from typing import Any, Callable, Mapping, Tuple

from ddp_probe.ours import ours

bases: Callable[[type], Tuple[type, ...]] = type.__dict__["__mro__"].__get__
class_contents: Callable[[type], Mapping[str, Any]] = type.__dict__["__dict__"].__get__
qualname: Callable[[type], str] = type.__dict__["__qualname__"].__get__
_module: Callable[[type], Any] = type.__dict__["__module__"].__get__


def class_name(obj_or_type: Any) -> str:
    """Return module and name of a class, or of the class of a value."""
    kind = type(obj_or_type)
    named = obj_or_type if issubclass(kind, type) else kind
    try:
        module, name = _module(named), qualname(named)
    except ours(Exception):
        return "?"
    return name if type(module) is not str or module == "builtins" else module + "." + name
