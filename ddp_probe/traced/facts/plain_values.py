"""Tells the plain values of local names in the job's frames: numbers, flags, lengths and shapes. None of the job's code runs for it."""

import enum
import itertools
from types import CodeType, GetSetDescriptorType
from typing import Any, Dict, Iterable, Iterator, List, Tuple

from ddp_probe.shared import settings
from ddp_probe.shared.masks import MASK, secret_name
from ddp_probe.shared.ours import ours
from ddp_probe.shared.own_code import foreign, framework, starts_a_child
from ddp_probe.shared.schema import FrameValues
from ddp_probe.traced.facts.call_site import BETWEEN, PROBE, site, within
from ddp_probe.traced.facts.describe import bases, class_contents, namespace, qualname, reader
from ddp_probe.traced.facts.frame_variables import HAS_VIEW, FrameLook, look_at_main_thread, look_at_traceback

_FRAMES, _NAMES = 8, 20
_CHARACTERS, _ATTRIBUTES, _BITS = 100, 200, 128
_FUNCTION = 1  # CO_OPTIMIZED
_NOTHING = object()
_NUMPY = ("bool_", "int32", "int64", "float16", "float32", "float64")


def values_of_main_thread() -> List[FrameValues]:
    """Return the values in the job's frames of the main thread, as it stands; the outermost first, as stacks are."""
    wanted = settings.get(settings.VALUES)
    if wanted == "off" or (wanted != "all" and not HAS_VIEW):
        return []
    return _values(look_at_main_thread(_is_of_the_job, _FRAMES))


def values_of_traceback(step: Any) -> List[FrameValues]:
    """Return the values in the job's frames that an exception has left."""
    return _values(look_at_traceback(step, _is_of_the_job, _FRAMES)) if settings.get(settings.VALUES) != "off" else []


def _is_of_the_job(code: CodeType, space: Dict[str, Any]) -> bool:
    module: Any = dict.get(space, "__name__")
    if type(module) is not str or within(module, PROBE + BETWEEN) or framework(module.partition(".")[0]):
        return False
    return not foreign(code.co_filename) and not starts_a_child(code)


def _values(looks: List[FrameLook]) -> List[FrameValues]:
    """Tell the plain values of each look, and let go what it holds."""
    frames = []
    for look in reversed(looks):
        values = _plain_values(look)
        look.variables.clear()
        if values:
            frames.append(FrameValues(site=site(look.code, look.line), values=values))
    return frames


def _plain_values(look: FrameLook) -> Dict[str, str]:
    values: Dict[str, str] = {}
    for name in _names(look.code):
        if len(values) == _NAMES:
            return values
        if name in look.variables:
            _add(values, name, look.variables[name])
    if look.code.co_varnames[:1] == ("self",) and "self" in look.variables:
        for name, value in _attributes(look.variables["self"]):
            if len(values) == _NAMES:
                break
            _add(values, "self." + name, value)
    return values


def _names(code: CodeType) -> Iterable[str]:
    """Return the names of a function, or those that a module's own code uses."""
    if code.co_flags & _FUNCTION:
        return dict.fromkeys(code.co_varnames + code.co_cellvars + code.co_freevars)
    return code.co_names


def named_values(names: Iterable[str], variables: Dict[str, Any], space: Dict[str, Any]) -> Dict[str, str]:
    """Return the plain values of names as the source has them, such as `loss` and `self.best`."""
    values: Dict[str, str] = {}
    for name in itertools.islice(names, _NAMES):
        root, *attributes = name.split(".")
        if root not in variables and root not in space:
            continue
        value = variables[root] if root in variables else space[root]
        for attribute in attributes:
            value = _own_namespace(value).get(attribute, _NOTHING)
        if value is not _NOTHING:
            _add(values, name, value)
    return values


def _add(values: Dict[str, str], name: str, value: Any) -> None:
    try:
        text = _plain(value)
    except ours(Exception):
        return
    if text:
        values[name[:_CHARACTERS]] = MASK if secret_name(name) else text[:_CHARACTERS]


def _attributes(instance: Any) -> Iterator[Tuple[str, Any]]:
    """Yield an instance's own attributes; private containers, of which a module of torch has a dozen, are left out."""
    try:
        attributes = list(itertools.islice(_own_namespace(instance).items(), _ATTRIBUTES))
    except ours(RuntimeError):  # Another thread adds one.
        return
    for name, value in attributes:
        if type(name) is str and not (name.startswith("_") and _is_container(value)):
            yield name, value


def _is_container(value: Any) -> bool:
    kind = type(value)
    return kind is dict or kind is list or kind is tuple or kind is set or kind is frozenset


def _own_namespace(instance: Any) -> Dict[str, Any]:
    """Return an instance's __dict__, through the interpreter's descriptor: a property of that name is the job's code."""
    for kind in bases(type(instance)):
        descriptor = class_contents(kind).get("__dict__")
        if descriptor is not None:
            attributes = descriptor.__get__(instance) if type(descriptor) is GetSetDescriptorType else None
            return attributes if type(attributes) is dict else {}
    return {}


def _plain(value: Any) -> str:
    """Return the text of a plain value; empty if it is not one."""
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return repr(value)
    if kind is int:
        return repr(value) if value.bit_length() <= _BITS else "int of %d bits" % value.bit_length()
    if _is_container(value):
        return "len %d" % len(value)
    if any(base is enum.Enum for base in bases(kind)):
        name = _own_namespace(value).get("_name_")
        return "%s.%s" % (qualname(kind), name) if type(name) is str else ""
    return _of_numpy(value, kind) or _shape_of_tensor(value, kind)


def _of_numpy(value: Any, kind: type) -> str:
    numpy = namespace("numpy")
    if not numpy:
        return ""
    if kind is numpy.get("ndarray"):
        return _shape(value.shape)
    if any(kind is numpy.get(name) for name in _NUMPY):
        return repr(value.item())
    return ""


def _shape_of_tensor(value: Any, kind: type) -> str:
    tensor = namespace("torch").get("Tensor")
    if tensor is None or not any(base is tensor for base in bases(kind)):
        return ""
    with namespace("torch._C")["DisableTorchFunction"]():  # Else a subclass's __torch_function__ runs.
        return _shape(reader(kind).key(value)[0])


def _shape(sizes: Any) -> str:
    return "shape %s" % [int(size) for size in sizes]
