"""Fills what is said of a file from the contents of its pickles, and whether torch.load(weights_only=True) accepts them."""

from typing import Any, Dict, Iterable, List, Tuple

from ddp_probe.checkpoints import stored_tensors, tensor_names
from ddp_probe.checkpoints.judged import Judged, Tensor
from ddp_probe.checkpoints.pickle_machine import Machine
from ddp_probe.checkpoints.pickle_stream import Global, Mapping, PickledCall
from ddp_probe.checkpoints.stored_tensors import Contents, Storage
from ddp_probe.checkpoints.weights_only import ALLOWED, weights_only_answer
from ddp_probe.wording.text import say

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


def from_pickle(judged: Judged, root: Any, machine: Machine, contents: Contents) -> None:
    """Fill the tensors, and what a load of the pickle needs."""
    tensors(judged, contents.tensors, contents.storages.values())
    judged.states = {name: len(held) for name, held in contents.states.items()}
    judged.prefixes = tensor_names.prefixes(tensor_names.model_state(contents.tensors, judged.states))
    judged.classes = [function.path for function in machine.globals.values() if function.path not in ALLOWED]
    judged.weights_only = weights_only_answer(machine)
    judged.remarks += [say("It asks for {name}, which newer versions of torch do not have.", name=name) for name in _GONE if name in machine.globals]
    pairs = _pairs(root)
    judged.keys = [name for name, _ in pairs[:_KEYS]]
    _recorded(judged, pairs)
    for name, value in pairs:
        if name == "meta" and type(value) is Mapping:
            _recorded(judged, _pairs(value))


def tensors(judged: Judged, listed: List[Tensor], storages: Iterable[Storage]) -> None:
    """Fill names and totals. A storage is counted once, however many tensors are views of it."""
    judged.names = listed
    judged.tensors = len(listed)
    judged.elements = sum(product(tensor.shape) for tensor in listed)
    sizes: Dict[str, int] = {}
    devices: Dict[str, int] = {}
    total = 0
    for storage in storages:
        total += storage.bytes
        devices[storage.device] = devices.get(storage.device, 0) + 1
    for tensor in listed:
        sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + product(tensor.shape) * (stored_tensors.dtype_size(tensor.dtype) or 0)
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
    return product(tensor.shape) * (stored_tensors.dtype_size(tensor.dtype) or 0)
