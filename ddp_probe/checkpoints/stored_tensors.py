"""Finds the tensors in what a pickle describes, the storages that they are views of, and their data types."""

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ddp_probe.checkpoints.judged import Damage, Tensor
from ddp_probe.checkpoints.pickle_stream import Global, Mapping, Persistent, PickledCall, PickledSet
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

SIZES: Dict[str, int] = {
    **dict.fromkeys(("bool", "uint8", "int8", "qint8", "quint8", "quint4x2", "quint2x4", "bits8", "bits1x8", "bits2x4", "bits4x2"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16", "bits16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32", "qint32", "complex32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}

_STORAGES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
    "QInt8": "qint8",
    "QUInt8": "quint8",
    "QInt32": "qint32",
    "QUInt4x2": "quint4x2",
    "QUInt2x4": "quint2x4",
    "Untyped": "uint8",
    "_Untyped": "uint8",
}


def dtype_of_storage(name: str) -> Optional[str]:
    """Return the data type of a storage class such as FloatStorage; None if torch has no such class."""
    return _STORAGES.get(name[: -len("Storage")]) if name.endswith("Storage") else None


def dtype_size(dtype: str) -> Optional[int]:
    """Return the bytes of one element."""
    return SIZES.get(dtype)


_NAME = 500  # Maximum characters of a tensor's name.
_DEPTH = 60  # Maximum parts of a name.
_INNER = ("_parameters", "_buffers", "_modules")  # What a module has in its attributes, and not in the names of its state.
_FAULTS = 100
_NESTED = 8  # Rebuild functions within each other.


class Storage(NamedTuple):
    """What a pickle says about one storage."""

    key: str
    dtype: str
    device: str
    elements: int

    @property
    def bytes(self) -> int:
        """Return the size of its record."""
        return self.elements * (dtype_size(self.dtype) or 1)


class Contents:
    """The tensors and storages of one object, and the mappings in which the tensors are."""

    def __init__(self) -> None:
        self.tensors: List[Tensor] = []
        self.storages: Dict[str, Storage] = {}
        self.states: Dict[str, List[Tensor]] = {}  # The path of a mapping to the tensors that are directly in it.
        self.faults: List[Damage] = []
        self.needed: Dict[str, int] = {}  # Elements of a storage, by the views of it.

    def fault(self, text: str) -> None:
        """Add what torch.load fails on."""
        if len(self.faults) < _FAULTS:
            self.faults.append(Damage(text, "data.pkl"))


class _Place(NamedTuple):
    """A value's position, linked upwards so that a deep one costs no more than a flat one."""

    above: Optional["_Place"]
    name: str


def _path(place: Optional[_Place]) -> str:
    parts: List[str] = []
    while place is not None and len(parts) < _DEPTH:
        if place.name:
            parts.append(place.name)
        place = place.above
    text = ".".join(reversed(parts))
    return text if place is None and len(text) <= _NAME else "…" + text[-_NAME:]


def storage(identity: Any) -> Optional[Storage]:
    """Return the storage of a persistent id; None if it is something else."""
    if type(identity) is not tuple or len(identity) < 5 or _text(identity[0]) != "storage":
        return None
    kind, key, device, elements = identity[1:5]
    dtype = _dtype(kind)
    if dtype is None or type(elements) is not int or elements < 0 or type(key) not in (str, int, bytes):
        return None
    return Storage(_text(key), dtype, _text(device), elements)


def _dtype(kind: Any) -> Optional[str]:
    """Return the type of a storage's elements. torch asks whatever stands for its class for a dtype, and a tensor has one too."""
    if type(kind) is PickledCall and type(kind.arguments) is tuple and type(kind.function) is Global and kind.function.path in _REBUILD:
        inner = kind.arguments[0] if kind.arguments else None
        kind = inner.identity[1] if type(inner) is Persistent and type(inner.identity) is tuple and len(inner.identity) > 1 else None
    return dtype_of_storage(kind.name) if type(kind) is Global else None


def _is_module_source(identity: Any) -> bool:
    """Tell whether a persistent id is that of a module's class with its source, which the older format has."""
    return type(identity) is tuple and len(identity) == 4 and _text(identity[0]) == "module"


def _text(value: Any) -> str:
    return value if type(value) is str else value.decode("utf-8", "replace") if type(value) is bytes else str(value) if type(value) is int else ""


def read(root: Any, persistent: List[Persistent]) -> Contents:
    """Return what an object holds. Each container is visited once, however often it is referred to."""
    contents = Contents()
    for reference in persistent:
        stored = storage(reference.identity)
        if stored is not None:
            contents.storages.setdefault(stored.key, stored)
        elif not _is_module_source(reference.identity):
            contents.fault(say("A persistent id is not that of a storage that torch knows."))
    seen: Set[int] = set()
    waiting = [_Step(root, None, None, None)] if _holds(root) else []
    while waiting:
        step = waiting.pop()
        value = step.value
        tensor = _tensor(value) if type(value) is PickledCall else None
        if tensor is not None:
            _add(contents, tensor, step)
        elif type(value) is PickledCall and _is_wrong(value):
            path = _path(step.place)
            contents.fault(
                say(
                    "The tensor {name} is made with arguments that torch does not take.",
                    name=quoted(path) if path else say("(unnamed)"),
                )
            )
        elif id(value) not in seen:
            seen.add(id(value))
            waiting.extend(reversed([part for part in _parts(step) if _holds(part.value)]))
    return contents


def _holds(value: Any) -> bool:
    """Tell whether there may be a tensor in a value: of millions of numbers and texts none is looked at."""
    kind = type(value)
    return bool(value) if kind is tuple or kind is list else kind in (Mapping, PickledCall, PickledSet)


class _Step(NamedTuple):
    """A value to look at: its position, the position of the mapping that holds it, and of the module that it belongs to."""

    value: Any
    place: Optional["_Place"]
    holder: Optional["_Place"]
    module: Optional["_Place"]


_TOP = _Place(None, "")


def _parts(step: _Step) -> Iterator[_Step]:
    """Yield what is in a container, with its name there."""
    value, place, module = step.value, step.place, step.module
    if type(value) is Mapping:
        yield from _pairs(value.pairs, step)
    elif type(value) is PickledCall:
        yield from _pairs(value.pairs, step)
        yield from (_Step(item, place, None, module) for item in value.items)
        yield _Step(value.state, place, None, module or (place or _TOP if _is_module(value) else None))
        yield _Step(value.arguments, place, None, None)
    else:
        items = value.items if type(value) is PickledSet else value
        yield from (_Step(item, _Place(place, str(index)), None, None) for index, item in enumerate(items))


def _is_module(call: PickledCall) -> bool:
    """Tell whether an object is a module: it has parameters, or a class that TorchScript compiled."""
    if type(call.function) is Global and call.function.module.startswith("__torch__"):
        return True
    return type(call.state) is Mapping and type(call.state.get("_parameters")) in (Mapping, PickledCall)


def _pairs(pairs: List[Any], step: _Step) -> Iterator[_Step]:
    holder = step.module or step.place or _TOP
    for index in range(0, len(pairs) - 1, 2):
        key, value = pairs[index], pairs[index + 1]
        name = _text(key) or ("?" if type(key) is not str else "")
        inner = step.module is not None and name in _INNER
        yield _Step(value, step.place if inner else _Place(step.place, name), holder if type(key) is str else None, step.module)


class _NamelessTensor(NamedTuple):
    """A tensor without its name."""

    storage: Optional[Storage]
    dtype: str
    shape: Tuple[int, ...]
    device: str
    end: int  # The number of elements that its storage must have.


def _add(contents: Contents, part: _NamelessTensor, step: _Step) -> None:
    name = _path(step.place)
    tensor = Tensor(name, part.shape, part.dtype, part.device, part.storage.key if part.storage else "")
    contents.tensors.append(tensor)
    if step.holder is not None:
        contents.states.setdefault(_path(step.holder), []).append(tensor)
    if part.storage is not None:
        size, own_size = dtype_size(part.dtype) or 1, dtype_size(part.storage.dtype) or 1
        contents.needed[part.storage.key] = max(contents.needed.get(part.storage.key, 0), -(-part.end * size // own_size))


def beyond(contents: Contents) -> Iterator[Tuple[Storage, int]]:
    """Yield the storages that are smaller than the views of them need, with how many elements those need."""
    for key, needed in contents.needed.items():
        if needed > contents.storages[key].elements:
            yield contents.storages[key], needed


def _tensor(call: PickledCall, depth: int = 0) -> Optional[_NamelessTensor]:
    """Return the tensor that a call of one of torch's rebuild functions makes."""
    function, arguments = call.function, call.arguments
    if type(function) is not Global or type(arguments) is not tuple or depth > _NESTED:
        return None
    path = function.path
    if path in _ARGUMENTS and not _ARGUMENTS[path][0] <= len(arguments) <= _ARGUMENTS[path][1]:
        return None
    try:
        if path in _REBUILD:
            return _REBUILD[path](arguments)
        return _REBUILD_OF_TENSORS[path](arguments, depth) if path in _REBUILD_OF_TENSORS else None
    except (IndexError, TypeError, ValueError, AttributeError):
        return None


def _is_wrong(call: PickledCall) -> bool:
    """Tell whether a call of one of torch's functions cannot make a tensor; asked if no tensor was found for a call."""
    path = call.function.path if type(call.function) is Global else ""
    if path not in _ARGUMENTS or type(call.arguments) is not tuple:
        return path in _ARGUMENTS
    least, most = _ARGUMENTS[path]
    # A storage that is not a persistent id is pickled in another way, which is not followed.
    return not least <= len(call.arguments) <= most or type(call.arguments[0]) is not PickledCall


def _strided(arguments: Tuple[Any, ...]) -> Optional[_NamelessTensor]:
    place, offset, shape, stride = arguments[:4]
    stored = storage(place.identity) if type(place) is Persistent else None
    if stored is None:
        return None
    sizes = _numbers(shape)
    end = _end(offset, sizes, _numbers(stride))
    return _NamelessTensor(stored, stored.dtype, sizes, stored.device, end)


def _strided_v3(arguments: Tuple[Any, ...]) -> Optional[_NamelessTensor]:
    tensor = _strided(arguments)
    return tensor._replace(dtype=arguments[6].name) if tensor and type(arguments[6]) is Global else tensor


def _inner(arguments: Tuple[Any, ...], depth: int) -> Optional[_NamelessTensor]:
    return _tensor(arguments[0], depth + 1) if type(arguments[0]) is PickledCall else None


def _sparse(arguments: Tuple[Any, ...], depth: int) -> Optional[_NamelessTensor]:
    data = arguments[1]
    values = data[1] if type(data[2]) is not PickledCall or _shape(data[2]) is not None else data[2]
    tensor = _tensor(values, depth + 1) if type(values) is PickledCall else None
    shape = next((shape for shape in map(_shape, data[2:]) if shape is not None), ())
    return tensor._replace(shape=shape) if tensor else None


def _meta(arguments: Tuple[Any, ...]) -> Optional[_NamelessTensor]:
    return _NamelessTensor(None, arguments[0].name, _numbers(arguments[1]), "meta", 0)


def _wrapper(arguments: Tuple[Any, ...]) -> Optional[_NamelessTensor]:
    return _NamelessTensor(None, arguments[1].name, _numbers(arguments[2]), _text(arguments[6]) or "?", 0)


def _from_numpy(arguments: Tuple[Any, ...], depth: int) -> Optional[_NamelessTensor]:
    inner = _tensor(arguments[0], depth + 1) if type(arguments[0]) is PickledCall else None
    dtype = arguments[1].name if type(arguments[1]) is Global else "?"
    return _NamelessTensor(inner.storage if inner else None, dtype, inner.shape if inner else (), _text(arguments[2]) or "?", 0)


def _typed(arguments: Tuple[Any, ...], depth: int) -> Optional[_NamelessTensor]:
    """A subclass, or a tensor with attributes: the function and arguments that make it are arguments."""
    return _tensor(PickledCall(arguments[0], arguments[2]), depth + 1)


def _shape(value: Any) -> Optional[Tuple[int, ...]]:
    if type(value) is PickledCall and type(value.function) is Global and value.function.path == "torch.Size":
        return _numbers(value.arguments[0])
    return _numbers(value) if type(value) is tuple and all(type(number) is int for number in value) else None


def _numbers(value: Any) -> Tuple[int, ...]:
    """Return the numbers of a shape or of strides."""
    if type(value) is PickledCall:
        numbers = _shape(value)
        value = numbers if numbers is not None else value
    if type(value) not in (tuple, list) or len(value) > 64:
        raise ValueError
    if not all(type(number) is int and 0 <= number < 1 << 63 for number in value):
        raise ValueError
    return tuple(value)


def _end(offset: Any, shape: Tuple[int, ...], stride: Tuple[int, ...]) -> int:
    """Return the number of elements that a storage must have for this view."""
    if type(offset) is not int or len(stride) != len(shape):
        raise ValueError
    return offset + sum((size - 1) * step for size, step in zip(shape, stride)) + 1 if 0 not in shape else 0


_REBUILD = {
    "torch._utils._rebuild_tensor": _strided,
    "torch._utils._rebuild_tensor_v2": _strided,
    "torch._utils._rebuild_tensor_v3": _strided_v3,
    "torch._utils._rebuild_qtensor": _strided,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta,
    "torch._utils._rebuild_wrapper_subclass": _wrapper,
}
_ARGUMENTS = {
    "torch._utils._rebuild_tensor": (4, 4),
    "torch._utils._rebuild_tensor_v2": (6, 7),
    "torch._utils._rebuild_tensor_v3": (7, 8),
    "torch._utils._rebuild_qtensor": (7, 7),
    "torch._utils._rebuild_parameter": (3, 3),
}
_REBUILD_OF_TENSORS = {
    "torch._utils._rebuild_parameter": _inner,
    "torch._utils._rebuild_parameter_with_state": _inner,
    "torch._utils._rebuild_nested_tensor": _inner,
    "torch._utils._rebuild_sparse_tensor": _sparse,
    "torch._utils._rebuild_sparse_csr_tensor": _sparse,
    "torch._utils._rebuild_device_tensor_from_numpy": _from_numpy,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": _from_numpy,
    "torch._utils._rebuild_xla_tensor": _from_numpy,
    "torch._utils._rebuild_mlc_tensor": _from_numpy,
    "torch._tensor._rebuild_from_type_v2": _typed,
    "torch._tensor._rebuild_from_type": _typed,
}
