"""Describes an object by its type and name, never by its repr, which is the user's code."""

import types
from typing import Any

from .slot import is_class, namespace

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
_QUALNAME: Any = vars(type)["__qualname__"]
_CLASS_DICT: Any = vars(type)["__dict__"]


def type_name(cls: Any) -> str:
    """Return module and qualified name of a class, without asking its metaclass."""
    module = _CLASS_DICT.__get__(cls).get("__module__")
    name = str(_QUALNAME.__get__(cls))
    return "%s.%s" % (module, name) if type(module) is str and module != "builtins" else name


def describe(found: Any) -> str:
    """Say what this is."""
    kind = type(found)
    if kind in _FUNCTIONS:
        return "the function %s.%s" % (found.__module__, found.__qualname__)
    if is_class(found):
        return "the class %s" % type_name(found)
    space = namespace(found)
    if space is not None:
        return "the module %s" % space.get("__name__")
    return "an object of type %s" % type_name(kind)
