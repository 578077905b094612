"""The place of an attribute: read and written raw, without running any __getattr__, metaclass or lazy module."""

import sys
import types
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from ddp_probe.traced.patching.call import Target

MISSING: Any = object()

_MODULE_DICT: Any = vars(types.ModuleType)["__dict__"]
_CLASS_DICT: Any = vars(type)["__dict__"]
_CLASS_MRO: Any = vars(type)["__mro__"]


def namespace(module: Any) -> Optional[Dict[str, Any]]:
    """Return the dictionary of a module without touching its attributes; None if it is not a module."""
    if not issubclass(type(module), types.ModuleType):
        return None
    attributes = _MODULE_DICT.__get__(module)
    return attributes if type(attributes) is dict else None


def is_class(value: Any) -> bool:
    """Tell whether this is a class, whatever its __class__ says."""
    return issubclass(type(value), type)


def class_order(cls: Any) -> Tuple[Any, ...]:
    """Return the method resolution order of a class, without asking its metaclass."""
    return tuple(_CLASS_MRO.__get__(cls))


def class_attribute(cls: Any, name: str) -> Tuple[Any, bool]:
    """Return the raw attribute along the method resolution order, and whether the class itself holds it."""
    for owner in class_order(cls):
        value = _CLASS_DICT.__get__(owner).get(name, MISSING)
        if value is not MISSING:
            return value, owner is cls
    return MISSING, False


class Slot(NamedTuple):
    """One attribute of a module or a class, read and written directly in its dictionary."""

    holder: Any
    attribute: str
    existed: bool
    label: str

    @property
    def in_class(self) -> bool:
        """Tell whether the slot belongs to a class."""
        return is_class(self.holder)

    def read(self) -> Any:
        """Return what the slot itself holds, without what is inherited; MISSING if it is empty."""
        if self.in_class:
            return _CLASS_DICT.__get__(self.holder).get(self.attribute, MISSING)
        return (namespace(self.holder) or {}).get(self.attribute, MISSING)

    def write(self, value: Any) -> None:
        """Put a value into the slot."""
        if self.in_class:
            type.__setattr__(self.holder, self.attribute, value)  # Skips the metaclass, and keeps the type's own slots right.
        else:
            _MODULE_DICT.__get__(self.holder)[self.attribute] = value

    def clear(self) -> None:
        """Remove the slot."""
        if self.in_class:
            type.__delattr__(self.holder, self.attribute)
        else:
            _MODULE_DICT.__get__(self.holder).pop(self.attribute, None)


def locate(target: Target) -> Union[Tuple[Slot, Any], str]:
    """Return the slot of a target and what it holds, or a sentence saying why there is none."""
    module = sys.modules.get(target.module)
    if module is None:
        return "%s is not imported." % target.module
    space = namespace(module)
    if space is None:
        return "%s is not a module." % target.module
    parts = target.qualname.split(".")
    if len(parts) == 1:
        value = space.get(parts[0], MISSING)
        slot = Slot(module, parts[0], True, str(target))
        return "%s has no attribute %s." % (target.module, parts[0]) if value is MISSING else (slot, value)
    return _locate_in_class(target, space.get(parts[0], MISSING), parts)


def _locate_in_class(target: Target, value: Any, parts: List[str]) -> Union[Tuple[Slot, Any], str]:
    holder, own, label = sys.modules[target.module], True, target.module
    for name, following in zip(parts, parts[1:]):
        if value is MISSING:
            return "%s has no attribute %s." % (label, name)
        label = "%s.%s" % (label, name)
        if not is_class(value):
            return "%s is not a class." % label
        holder = value
        value, own = class_attribute(holder, following)
    if value is MISSING:
        return "%s has no attribute %s." % (label, parts[-1])
    return Slot(holder, parts[-1], own, str(target)), value


# Describes an object by its type and name, never by its repr, which is the user's code.

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
_QUALNAME: Any = vars(type)["__qualname__"]


def type_name(cls: Any) -> str:
    """Return module and qualified name of a class, without asking its metaclass."""
    module = _CLASS_DICT.__get__(cls).get("__module__")
    name = str(_QUALNAME.__get__(cls))
    return "%s.%s" % (module, name) if type(module) is str and module != "builtins" else name


def describe(value: Any) -> str:
    """Say what this is."""
    kind = type(value)
    if kind in _FUNCTIONS:
        return "the function %s.%s" % (value.__module__, value.__qualname__)
    if is_class(value):
        return "the class %s" % type_name(value)
    space = namespace(value)
    if space is not None:
        return "the module %s" % space.get("__name__")
    return "an object of type %s" % type_name(kind)
