"""Reads classes through type's own descriptors, because a metaclass can run the job's code on attribute access."""

from typing import Any, Callable, Iterable, List, Mapping, Tuple

from ddp_probe.shared.ours import ours
from ddp_probe.shared.own_code import foreign, framework
from ddp_probe.traced.facts.loaded import namespace

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


def overridden(kind: type, names: Iterable[str]) -> List[str]:
    """Return those of these attributes that a class of the job defines; what torch, a vendor or another library defines is not the job's."""
    own = [contents for contents, module in ((class_contents(base), _module(base)) for base in bases(kind)) if not _of_a_library(module)]
    return [name for name in names if any(name in contents for contents in own)]


def _of_a_library(module: Any) -> bool:
    if type(module) is not str:
        return False
    file = namespace(module).get("__file__")
    return module == "builtins" or framework(module.partition(".")[0]) or (type(file) is str and foreign(file))
