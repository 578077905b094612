"""Describes a value without running the job's code: no repr, no str, no property of an unknown class.

Only values of exact types are shown. Types are compared by identity, never hashed or compared with ==: a metaclass may define that.
"""

import datetime
import enum
import functools
import itertools
import pathlib
import types
from collections import OrderedDict, defaultdict
from typing import Any, Dict, Iterable, Tuple

from ddp_probe.shared.masking.secrets import MASK, masked, secret_name
from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts._classes import bases, class_name, overridden, qualname
from ddp_probe.traced.facts._forms import reader
from ddp_probe.traced.facts.loaded import contents, namespace

__all__ = ["class_name", "describe", "describe_mapping", "is_path", "overridden"]

_DEPTH = 3
_ITEMS = 20  # half as many per level, because they multiply
_MAPPING_ITEMS = 100
_TEXT = 200

_AS_PRINTED = (int, float, complex, bool, type(None), range, slice, type(Ellipsis))
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, type(str.join), type(object.__init__))
_PATHS = (pathlib.PosixPath, pathlib.PurePosixPath, pathlib.WindowsPath, pathlib.PureWindowsPath)
_BRACKETS = ((list, "[", "]"), (tuple, "(", ")"), (set, "{", "}"), (frozenset, "frozenset({", "})"))


def _is(kind: Any, kinds: Iterable[Any]) -> bool:
    return any(kind is known for known in kinds)


def is_path(value: Any) -> bool:
    """Return whether a value is a path of pathlib's own classes."""
    return _is(type(value), _PATHS)


def describe(value: Any, limit: int = _TEXT) -> str:
    """Return a value in at most `limit` characters, secrets masked; a string is returned without quotes."""
    try:
        text = masked(value, limit) if type(value) is str else _describe(value, 0)
    except ours(Exception):
        text = "<%s>" % class_name(value)
    return text if len(text) <= limit else text[: max(limit - 3, 0)] + "..."


def describe_mapping(mapping: Any) -> Dict[str, str]:
    """Return a dict's items, described; at most 100."""
    if type(mapping) is types.MappingProxyType:
        items: Iterable[Tuple[Any, Any]] = mapping.items()
    elif issubclass(type(mapping), dict):
        items = dict.items(mapping)  # a subclass's own items() is the job's code
    else:
        return {}
    try:
        chosen = list(itertools.islice(items, _MAPPING_ITEMS))
    except ours(RuntimeError):  # another thread changed it in the meantime
        return {}
    return {describe(key): MASK if _hides(key) and value is not None else describe(value) for key, value in chosen}


def _hides(key: Any) -> bool:
    return type(key) is str and secret_name(key)


def _describe(value: Any, depth: int) -> str:
    kind = type(value)
    if kind is str:
        return repr(masked(value, _TEXT))
    if kind is int and value.bit_length() > 256:  # Python 3.11 refuses to print the longest ones
        return "int of %d bits" % value.bit_length()
    if _is(kind, _AS_PRINTED):
        return repr(value)
    if _is(kind, (bytes, bytearray)):
        return "%s(%d)" % (kind.__name__, len(value))
    if _is(kind, _PATHS):
        return masked(str(value), _TEXT)
    if kind is datetime.timedelta:
        return str(value)
    for known, before, after in _BRACKETS:
        if kind is known:
            return before + _sequence(value, depth) + after
    if _is(kind, _dicts()):
        return "{" + _items(value, depth) + "}"
    return _describe_code(value, kind, depth)


def _describe_code(value: Any, kind: type, depth: int) -> str:
    if issubclass(kind, type):
        return class_name(value)
    if _is(kind, _FUNCTIONS):
        owner, name = value.__module__ if hasattr(value, "__module__") else None, value.__qualname__
        return "%s.%s" % (owner, name) if type(owner) is str else str(name)
    if kind is types.MethodType:
        return _describe(value.__func__, depth)
    if kind is functools.partial:
        return "functools.partial(%s)" % _describe(value.func, depth)
    if kind is types.ModuleType:
        return "module %s" % contents(value).get("__name__")
    if issubclass(type(kind), enum.EnumMeta):
        name = contents(value).get("_name_")
        return "%s.%s" % (qualname(kind), name) if type(name) is str else "<%s>" % class_name(kind)
    return _describe_torch(value, kind)


def _describe_torch(value: Any, kind: type) -> str:
    torch = namespace("torch")
    if torch and _is(kind, (torch.get("device"), torch.get("dtype"))):
        return str(value)
    if torch and kind is torch.get("Size"):
        return str(list(value))
    if torch and _is(torch.get("Tensor"), bases(kind)):
        return _describe_tensor(value, kind)
    return "<%s>" % class_name(kind)


def _describe_tensor(value: Any, kind: type) -> str:
    with namespace("torch._C")["DisableTorchFunction"]():  # else a subclass's __torch_function__ runs
        shape, device, dtype, _ = reader(kind).key(value)
        parts = [str(dtype).replace("torch.", ""), str([int(size) for size in shape]), str(device)]
    return "%s(%s)" % (qualname(kind), ", ".join(parts))


def _dicts() -> Tuple[Any, ...]:
    """Return the dict types whose items can be read by dict's own code, including mmengine's configs."""
    return (dict, OrderedDict, defaultdict, namespace("mmengine.config.config").get("ConfigDict"), namespace("addict.addict").get("Dict"))


def _sequence(values: Any, depth: int) -> str:
    if depth >= _DEPTH:
        return "..."
    shown = [_describe(value, depth + 1) for value in itertools.islice(values, _ITEMS >> depth)]
    if issubclass(type(values), (set, frozenset)):
        shown.sort()  # the order of a set differs between ranks
    return ", ".join(shown + (["..."] if len(values) > _ITEMS >> depth else []))


def _items(values: Any, depth: int) -> str:
    if depth >= _DEPTH:
        return "..."
    shown = [
        "%s: %s" % (_describe(key, depth + 1), MASK if _hides(key) and value is not None else _describe(value, depth + 1))
        for key, value in itertools.islice(dict.items(values), _ITEMS >> depth)
    ]
    return ", ".join(shown + (["..."] if dict.__len__(values) > _ITEMS >> depth else []))
