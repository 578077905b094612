"""The cheapest accelerator, for any torch: parameters and buffers in the host's memory whose .device names a card.

DDP's constructor and the probe see the named card; gloo and the optimisers train on the memory. `on` takes the place of `.to`, which
no torch without the vendor's plugin has; the tensors of the batch stay on the CPU, and DDP's device_ids have to be None to run a forward.
"""

from typing import Any, Dict, NamedTuple, Type, Union

import torch
from torch import nn


class NamedDevice(NamedTuple):
    """What torch.device would be, for a type that this torch does not know."""

    type: str
    index: int

    def __repr__(self) -> str:
        return "device(type=%r, index=%d)" % (self.type, self.index)

    def __str__(self) -> str:
        return "%s:%d" % (self.type, self.index)


_Device = Union[torch.device, NamedDevice]


def _device(name: str) -> _Device:
    try:
        return torch.device(name)
    except RuntimeError:
        kind, _, index = name.partition(":")
        return NamedDevice(kind, int(index or 0))


class _Labelled:
    """A tensor that says it is elsewhere. Without torch functions, so that what is computed from it is a plain tensor."""

    __module__ = "torch_gcu"  # The probe believes a vendor's property of a tensor, and not the job's.
    __torch_function__ = torch._C._disabled_torch_function_impl
    _label: _Device

    @property
    def device(self) -> _Device:
        return self._label

    def __deepcopy__(self, memo: Dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = _label(self.detach().clone(), self._label, type(self), self.requires_grad)
        return memo[id(self)]


class LabelledParameter(_Labelled, nn.Parameter):
    """A parameter that says it is on a card."""


class LabelledBuffer(_Labelled, torch.Tensor):
    """A buffer that says it is on a card."""


def _label(tensor: torch.Tensor, device: _Device, kind: Type[Any], requires_grad: bool) -> Any:
    labelled = torch.Tensor._make_subclass(kind, tensor.detach(), requires_grad)
    labelled._label = device
    return labelled


def on(module: nn.Module, device: str) -> nn.Module:
    """Name a card for all that a module holds, in place; a part of it can be named otherwise afterwards.

    Before the optimiser is made, as with .to. Tied parameters stay tied within one call.
    """
    where, done = _device(device), {}
    for part in module.modules():
        for tensors, kind in ((part._parameters, LabelledParameter), (part._buffers, LabelledBuffer)):
            for name, tensor in tensors.items():
                if tensor is not None:
                    tensors[name] = done.setdefault(id(tensor), _label(tensor, where, kind, tensor.requires_grad))
    return module
