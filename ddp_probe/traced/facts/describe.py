"""Describes a value without running the job's code: no repr, no str, no property of an unknown class, no __getattr__ of a module."""

import datetime
import enum
import functools
import itertools
import pathlib
import sys
import types
from collections import OrderedDict, defaultdict
from operator import attrgetter
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Tuple

from ddp_probe.shared.masks import MASK, masked, secret_name
from ddp_probe.shared.ours import ours
from ddp_probe.shared.own_code import foreign, framework


def contents(holder: Any) -> Dict[str, Any]:
    """Return an object's own namespace; empty if it has none that is safe to read."""
    try:
        attributes = object.__getattribute__(holder, "__dict__")
    except ours(Exception):
        return {}
    return attributes if type(attributes) is dict else {}


def namespace(module: str) -> Dict[str, Any]:
    """Return the namespace of a module in sys.modules; empty if the program has not imported it."""
    held = sys.modules.get(module)
    return {} if held is None else contents(held)


# Reads classes through type's own descriptors, because a metaclass can run the job's code on attribute access.

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


# Describes tensors, once per combination of shape, device, dtype and requires_grad, which keeps a snapshot cheap.

_DEVICE_NAME = 100
_NAMES = ("shape", "device", "dtype", "requires_grad")


class TensorReader(NamedTuple):
    """What reads the tensors of one class: shape, device, dtype and requires_grad, or the device alone. Neither runs code of the job."""

    key: Callable[[Any], Any]
    device: Callable[[Any], Any]


def reader(kind: type) -> TensorReader:
    """Return what reads tensors of this class: their attributes, or torch's descriptors if a class of the job overrides one.

    A class of the job with __torch_dispatch__ may be asked in C++, whichever way its tensors are read; its tensors and what is not a tensor are not.
    """
    tensor: Any = namespace("torch").get("Tensor")
    if not any(base is tensor for base in bases(kind)) or overridden(kind, ("__torch_dispatch__",)):
        return TensorReader(_unread, _unread)
    if not overridden(kind, (*_NAMES, "__getattribute__")):
        return TensorReader(attrgetter(*_NAMES), attrgetter("device"))
    read = [getattr(tensor.__base__, name).__get__ for name in _NAMES]
    return TensorReader(lambda value: tuple(get(value) for get in read), read[1])


def _unread(_: Any) -> Any:
    raise TypeError("Only the job's own code can answer.")


class Form:
    """The description shared by all tensors of one shape, device, dtype and requires_grad, and their number."""

    __slots__ = ("count", "device", "dtype", "shape", "requires_grad", "elements", "bytes", "hashed")

    def __init__(self, device: str = "", dtype: str = "", hashed: str = "") -> None:
        self.count = 0
        self.device, self.dtype, self.hashed = device[:_DEVICE_NAME], dtype, hashed
        self.shape: List[int] = []
        self.requires_grad = False
        self.elements = self.bytes = 0


def _form(tensor: Any, shape: Any, device: Any, dtype: Any, requires_grad: Any) -> Form:
    form = Form(str(device), str(dtype).replace("torch.", ""))
    form.shape = [int(size) for size in shape]
    form.requires_grad = bool(requires_grad)
    form.elements = 1
    for size in form.shape:
        form.elements *= size
    form.bytes = form.elements * int(namespace("torch")["Tensor"].__base__.element_size(tensor))
    form.hashed = "\t%s\t%s\t%d\n" % (form.shape, form.dtype, form.requires_grad)
    return form


class Forms:
    """Reads tensors into forms."""

    def __init__(self) -> None:
        self.by_key: Dict[Any, Form] = {}
        self.lazy = Form(dtype="lazy", hashed="\tlazy\n")
        self.unreadable = Form(hashed="\tunreadable\n")

    def of(self, tensors: List[Any]) -> List[Form]:
        """Return the form of each tensor."""
        forms: List[Form] = []
        add, get = forms.append, self.by_key.get
        last, lazy, read = None, False, TensorReader(_unread, _unread)
        for tensor in tensors:
            if type(tensor) is not last:
                last = type(tensor)
                lazy, read = self._is_lazy(last), reader(last)
            try:
                form = self.lazy if lazy else get(read.key(tensor)) or self._new(tensor, read)
            except ours(Exception):
                form = self._device_alone(tensor, read)
            form.count += 1
            add(form)
        return forms

    @staticmethod
    def _is_lazy(kind: type) -> bool:
        base = namespace("torch.nn.parameter").get("UninitializedTensorMixin")
        return any(ancestor is base for ancestor in bases(kind))

    def _new(self, tensor: Any, read: TensorReader) -> Form:
        key = read.key(tensor)
        return self.by_key.setdefault(key, _form(tensor, *key))

    def _device_alone(self, tensor: Any, read: TensorReader) -> Form:
        try:
            device = str(read.device(tensor))
        except ours(Exception):
            return self.unreadable
        return self.by_key.setdefault(("device alone", device), Form(device, hashed=self.unreadable.hashed))


# Describes a value without running the job's code: no repr, no str, no property of an unknown class.
#
# Only values of exact types are shown. Types are compared by identity, never hashed or compared with ==: a metaclass may define that.

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
    return any(kind is listed for listed in kinds)


def is_path(value: Any) -> bool:
    """Return whether a value is a path of pathlib's classes."""
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
    for container, before, after in _BRACKETS:
        if kind is container:
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
    """Return the dict types whose items can be read by dict's code, including mmengine's configs."""
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
