"""Fills what is said of a file from the contents of its pickles."""

from typing import Any, Dict, Iterable, List, Tuple

from ddp_probe.reading.checkpoints import dtypes, names, weights_only
from ddp_probe.reading.checkpoints.contents import Contents, Storage
from ddp_probe.reading.checkpoints.machine import Machine
from ddp_probe.reading.checkpoints.model import Judged, Tensor
from ddp_probe.reading.checkpoints.values import Global, Mapping, PickledCall

_KEYS = 1000
_GONE = ("torch._utils._rebuild_sparse_csr_tensor",)  # torch 1.9 to 1.12 wrote it; torch 2.13 cannot load it.
_COUNTS = ("epoch", "iter", "iteration", "step", "global_step", "current_epoch", "num_epochs", "epochs")
_VERSIONS = {
    "mmengine_version": "mmengine",
    "mmcv_version": "mmcv",
    "pytorch-lightning_version": "lightning",
    "ds_version": "deepspeed",
    "transformers_version": "transformers",
    "torch_version": "torch",
    "accelerate_version": "accelerate",
}


def from_pickle(judged: Judged, root: Any, machine: Machine, found: Contents) -> None:
    """Fill the tensors, and what a load of the pickle needs."""
    tensors(judged, found.tensors, found.storages.values())
    judged.states = {name: len(held) for name, held in found.states.items()}
    judged.prefixes = names.prefixes(names.model_state(found.tensors, judged.states))
    judged.classes = [each.path for each in machine.globals.values() if each.path not in weights_only.ALLOWED]
    judged.weights_only = weights_only.judge(machine)
    judged.remarks += ["It asks for %s, which newer versions of torch do not have." % name for name in _GONE if name in machine.globals]
    pairs = _pairs(root)
    judged.keys = [name for name, _ in pairs[:_KEYS]]
    _recorded(judged, pairs)
    for name, value in pairs:
        if name == "meta" and type(value) is Mapping:
            _recorded(judged, _pairs(value))


def tensors(judged: Judged, found: List[Tensor], storages: Iterable[Storage]) -> None:
    """Fill names and totals. Storages are counted once, however many tensors are views of one."""
    judged.names = found
    judged.tensors = len(found)
    judged.elements = sum(product(tensor.shape) for tensor in found)
    sizes: Dict[str, int] = {}
    devices: Dict[str, int] = {}
    total = 0
    for storage in storages:
        total += storage.bytes
        devices[storage.device] = devices.get(storage.device, 0) + 1
    for tensor in found:
        sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + product(tensor.shape) * (dtypes.size(tensor.dtype) or 0)
        if not tensor.storage:
            devices[tensor.device] = devices.get(tensor.device, 0) + 1
    judged.bytes, judged.dtypes, judged.devices = total, sizes, devices


def product(shape: Tuple[int, ...]) -> int:
    """Return the number of elements of a shape."""
    total = 1
    for size in shape:
        total *= size
    return total


def _pairs(value: Any) -> List[Tuple[str, Any]]:
    """Return the text keys of a mapping with their values."""
    if type(value) is PickledCall and type(value.function) is Global and not value.pairs:
        value = value.state
    flat = value.pairs if type(value) in (Mapping, PickledCall) else []
    return [(flat[index], flat[index + 1]) for index in range(0, len(flat) - 1, 2) if type(flat[index]) is str]


def _recorded(judged: Judged, pairs: List[Tuple[str, Any]]) -> None:
    """Note the versions and counters that frameworks write beside the weights."""
    for name, value in pairs:
        if name in _VERSIONS and type(value) is str:
            judged.versions[_VERSIONS[name]] = value[:100]
        elif name in _COUNTS and type(value) is int and abs(value) < 1 << 63:
            judged.progress[name] = value


def size_of(tensor: Tensor) -> int:
    """Return the bytes of a tensor's elements."""
    return product(tensor.shape) * (dtypes.size(tensor.dtype) or 0)
