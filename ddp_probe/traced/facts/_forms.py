"""Describes tensors, once per combination of shape, device, dtype and requires_grad, which keeps a snapshot cheap."""

from operator import attrgetter
from typing import Any, Callable, Dict, List, NamedTuple

from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts._classes import bases, overridden
from ddp_probe.traced.facts.loaded import namespace

_TEXT = 100
_NAMES = ("shape", "device", "dtype", "requires_grad")


class TensorReader(NamedTuple):
    """What reads the tensors of one class: shape, device, dtype and requires_grad, or the device alone. Neither runs code of the job."""

    key: Callable[[Any], Any]
    device: Callable[[Any], Any]


def reader(kind: type) -> TensorReader:
    """Return what reads tensors of this class: their attributes, or torch's own descriptors if a class of the job overrides one.

    A class of the job with __torch_dispatch__ may be asked in C++, whichever way its tensors are read; its tensors and what is not a tensor are not.
    """
    tensor: Any = namespace("torch").get("Tensor")
    if not any(base is tensor for base in bases(kind)) or overridden(kind, ("__torch_dispatch__",)):
        return TensorReader(_unread, _unread)
    if not overridden(kind, (*_NAMES, "__getattribute__")):
        return TensorReader(attrgetter(*_NAMES), attrgetter("device"))
    read = [getattr(tensor.__base__, name).__get__ for name in _NAMES]
    return TensorReader(lambda one: tuple(get(one) for get in read), read[1])


def _unread(_: Any) -> Any:
    raise TypeError("Only the job's own code can answer.")


class Form:
    """The description shared by all tensors of one shape, device, dtype and requires_grad, and their number."""

    __slots__ = ("count", "device", "dtype", "shape", "requires_grad", "elements", "bytes", "hashed")

    def __init__(self, device: str = "", dtype: str = "", hashed: str = "") -> None:
        self.count = 0
        self.device, self.dtype, self.hashed = device[:_TEXT], dtype, hashed
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
        found: List[Form] = []
        add, get = found.append, self.by_key.get
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
        return found

    @staticmethod
    def _is_lazy(kind: type) -> bool:
        base = namespace("torch.nn.parameter").get("UninitializedTensorMixin")
        return any(known is base for known in bases(kind))

    def _new(self, tensor: Any, read: TensorReader) -> Form:
        key = read.key(tensor)
        return self.by_key.setdefault(key, _form(tensor, *key))

    def _device_alone(self, tensor: Any, read: TensorReader) -> Form:
        try:
            device = str(read.device(tensor))
        except ours(Exception):
            return self.unreadable
        return self.by_key.setdefault(("device alone", device), Form(device, hashed=self.unreadable.hashed))
