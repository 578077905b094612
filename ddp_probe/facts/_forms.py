"""Describes tensors, once per combination of shape, device, dtype and requires_grad, which keeps a snapshot cheap."""

from typing import Any, Dict, List

from ddp_probe.facts._classes import bases
from ddp_probe.facts.loaded import namespace
from ddp_probe.ours import ours

_TEXT = 100


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
    form.bytes = form.elements * int(tensor.element_size())
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
        last, lazy = None, False
        for tensor in tensors:
            if type(tensor) is not last:
                last = type(tensor)
                lazy = self._is_lazy(last)
            try:
                form = self.lazy if lazy else get((tensor.shape, tensor.device, tensor.dtype, tensor.requires_grad)) or self._new(tensor)
            except ours(Exception):
                form = self._device_alone(tensor)
            form.count += 1
            add(form)
        return found

    @staticmethod
    def _is_lazy(kind: type) -> bool:
        base = namespace("torch.nn.parameter").get("UninitializedTensorMixin")
        return any(known is base for known in bases(kind))

    def _new(self, tensor: Any) -> Form:
        key = (tensor.shape, tensor.device, tensor.dtype, tensor.requires_grad)
        return self.by_key.setdefault(key, _form(tensor, *key))

    def _device_alone(self, tensor: Any) -> Form:
        try:
            device = str(tensor.device)
        except ours(Exception):
            return self.unreadable
        return self.by_key.setdefault(("device alone", device), Form(device, hashed=self.unreadable.hashed))
