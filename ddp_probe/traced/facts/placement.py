"""Records the devices of a model's parameters and buffers in one pass, in torch's order. Nothing is copied, moved or called."""

from collections import OrderedDict
from contextlib import nullcontext
from hashlib import blake2b
from itertools import islice
from types import FunctionType
from typing import Any, ContextManager, Dict, Iterable, List, Set, Tuple

from ddp_probe.shared.ours import ours
from ddp_probe.shared.schema import Leaf, Placement, Tally
from ddp_probe.traced.facts.call_site import within
from ddp_probe.traced.facts.describe import Form, Forms, bases, class_contents, class_name, contents, describe, namespace, overridden, reader

_PARAMETERS = 500_000
_MODULES = 500_000


class Tensors:
    """Tensors and their names, each tensor once. Two lists, because one tuple per tensor would slow down the garbage collector."""

    def __init__(self) -> None:
        self.names: List[str] = []
        self.tensors: List[Any] = []
        self.shared = 0
        self._seen: Set[int] = set()

    def add(self, prefix: str, members: Iterable[Tuple[str, Any]]) -> None:
        """Add the tensors that are new, each under its first name."""
        seen = self._seen
        for name, tensor in members:
            if id(tensor) in seen:
                self.shared += 1
                continue
            seen.add(id(tensor))
            self.names.append(prefix + name)
            self.tensors.append(tensor)


class Walk:
    """One walk over the modules, in the order of named_parameters."""

    def __init__(self, module: Any) -> None:
        self.parameters = Tensors()
        self.buffers = Tensors()
        self.truncated = False
        self._met: Set[int] = set()
        self._walk(module)

    def _walk(self, module: Any) -> None:
        prefixes, waiting, met = [""], [module], self._met
        while waiting:
            prefix, module = prefixes.pop(), waiting.pop()
            if id(module) in met:
                self.parameters.shared += _names_below(module)
                continue
            met.add(id(module))
            if len(self.parameters.names) >= _PARAMETERS or len(met) > _MODULES:
                self.truncated = True
                return
            held = contents(module)
            self.parameters.add(prefix, _members(held, "_parameters"))
            self.buffers.add(prefix, _members(held, "_buffers"))
            children = _members(held, "_modules")
            prefixes += [prefix + name + "." for name, _ in reversed(children)]
            waiting += [child for _, child in reversed(children)]


def _members(held: Dict[str, Any], of: str) -> List[Tuple[str, Any]]:
    """Return names and values, read past what a class of the job makes of a dict or a name."""
    members: Any = held.get(of)
    kind = type(members)
    if kind is dict or kind is OrderedDict or class_name(kind).startswith("torch.jit."):
        items = members.items()
    elif issubclass(kind, dict):
        items = dict.items(members)
    else:
        return []
    return [(name if type(name) is str else _plain(name), value) for name, value in items if value is not None]


def _plain(name: Any) -> str:
    return str.__str__(name) if issubclass(type(name), str) else "?"


def _names_below(module: Any) -> int:
    """Count the parameters of a module that occurs again."""
    met: Set[int] = set()
    waiting, count = [module], 0
    while waiting and len(met) < _MODULES:
        current = waiting.pop()
        if id(current) in met:
            continue
        met.add(id(current))
        held = contents(current)
        count += len(_members(held, "_parameters"))
        waiting += [child for _, child in _members(held, "_modules")]
    return count


# Records the devices of a model's parameters and buffers in one pass. Nothing is copied or moved.

_CHUNK = 4096
_FIRST, _OFF = 5, 10
_TEXT = 100
_NAME = 300

# Their `device` property returns a stored value or the first parameter's device; another class's may do anything.
_DEVICE_PROPERTY_OF = ("torch", "mmengine", "transformers")
_ASKED_BY_IT = "__getattribute__ __getattr__ parameters named_parameters _named_members modules named_modules children named_children".split()


def _tallies(forms: Iterable[Form], of: str) -> Dict[str, Tally]:
    tallies: Dict[str, Tally] = {}
    for form in forms:
        key = getattr(form, of)
        if key and form.count:
            tally = tallies.setdefault(key, Tally())
            tally.count += form.count
            tally.elements += form.count * form.elements
            tally.bytes += form.count * form.bytes
    return tallies


def _majority(devices: Dict[str, Tally]) -> str:
    return max(devices, key=lambda device: devices[device].count) if devices else ""


def _leaf(name: str, form: Form) -> Leaf:
    return Leaf(name=name[:_NAME], device=form.device, shape=list(form.shape), dtype=form.dtype)


def _off(names: List[str], forms: List[Form], device: str, devices: Dict[str, Tally]) -> List[Leaf]:
    if not any(other != device for other in devices):  # saves almost every model a second check of each name
        return []
    elsewhere = (_leaf(name, form) for name, form in zip(names, forms) if form.device and form.device != device)
    return list(islice(elsewhere, _OFF)) if device else []


def _digest(names: List[str], forms: List[Form]) -> str:
    digest = blake2b(digest_size=8)
    for start in range(0, len(names), _CHUNK):
        lines = [name + form.hashed for name, form in zip(names[start : start + _CHUNK], forms[start : start + _CHUNK])]
        digest.update("".join(lines).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _property_is_known(device: property, kind: type) -> bool:
    getter = device.fget
    plain = type(getter) is FunctionType and within(str(getter.__globals__.get("__name__")), _DEVICE_PROPERTY_OF)
    return plain and not overridden(kind, _ASKED_BY_IT)


def _own_device(module: Any) -> str:
    """Return the module's `device` if reading it runs none of the job's code."""
    held = contents(module)
    if "device" in held:
        return describe(held["device"], _TEXT)
    for kind in bases(type(module)):
        device = class_contents(kind).get("device")
        if type(device) is property:
            try:
                return describe(module.device, _TEXT) if _property_is_known(device, type(module)) else ""
            except ours(Exception):
                return ""
        if device is not None:
            return describe(device, _TEXT) if type(device) in (str, namespace("torch").get("device")) else ""
    return ""


def _no_torch_function() -> ContextManager[Any]:
    """Return a context in which reading a tensor's attribute does not run a subclass's __torch_function__."""
    disable = namespace("torch._C").get("DisableTorchFunction")
    return disable() if disable else nullcontext()


def _of_parameters(placement: Placement, names: List[str], forms: Forms, tensors: List[Form]) -> None:
    placement.parameters = len(names)
    placement.devices, placement.dtypes = _tallies(forms.by_key.values(), "device"), _tallies(forms.by_key.values(), "dtype")
    placement.elements = sum(form.count * form.elements for form in forms.by_key.values())
    placement.trainable = sum(form.count for form in forms.by_key.values() if form.requires_grad)
    placement.lazy, placement.unreadable = forms.lazy.count, forms.unreadable.count
    placement.meta = placement.devices["meta"].count if "meta" in placement.devices else 0
    placement.first = [_leaf(name, form) for name, form in zip(names[:_FIRST], tensors)]
    placement.majority = _majority(placement.devices)
    placement.off_majority = _off(names, tensors, placement.majority, placement.devices)
    placement.digest = _digest(names, tensors)


def _of_buffers(placement: Placement, names: List[str], forms: Forms, tensors: List[Form]) -> None:
    placement.buffers = len(names)
    placement.buffer_devices = _tallies(forms.by_key.values(), "device")
    placement.buffers_off_majority = _off(names, tensors, placement.majority, placement.buffer_devices)


def snapshot(module: Any) -> Tuple[Placement, List[List[Any]]]:
    """Return the model's placement, and the full list: name, shape, dtype, requires_grad, device of each parameter."""
    placement = Placement(model=class_name(module), model_device=_own_device(module))
    walk = Walk(module)
    placement.shared, placement.truncated = walk.parameters.shared, walk.truncated
    of_parameters, of_buffers = Forms(), Forms()
    with _no_torch_function():
        parameter_forms = of_parameters.of(walk.parameters.tensors)
        found_buffers = of_buffers.of(walk.buffers.tensors)
    _of_parameters(placement, walk.parameters.names, of_parameters, parameter_forms)
    _of_buffers(placement, walk.buffers.names, of_buffers, found_buffers)
    rows: List[List[Any]] = []
    for name, form in zip(walk.parameters.names, parameter_forms):
        rows.append([name, form.shape, form.dtype, form.requires_grad, form.device])
    return placement, rows


def parameters(module: Any) -> List[Any]:
    """Return the parameters of a model, without asking the model."""
    return Walk(module).parameters.tensors


def devices_only(module: Any) -> Dict[str, int]:
    """Return how many parameters are on each device."""
    counts: Dict[Any, int] = {}
    with _no_torch_function():
        for tensor in parameters(module):
            try:
                device = reader(type(tensor)).device(tensor)
                counts[device] = counts.get(device, 0) + 1
            except ours(Exception):
                continue  # a parameter without a readable device is not counted
    return {str(device)[:_TEXT]: count for device, count in counts.items()}
