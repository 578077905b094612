"""Moves and wraps strange models, as one rank of one, and prints what came of each."""

import json
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class NoDevice(nn.Parameter):
    """A parameter that cannot say where it is."""

    @property
    def device(self):
        """Raise, as a proxy for something that is gone does."""
        raise RuntimeError("no device")


class Subclass(torch.Tensor):
    """A tensor subclass that does not want to be used."""

    @classmethod
    def __torch_function__(cls, func, kinds, args=(), kwargs=None):
        """Refuse what reads a tensor."""
        if getattr(func, "__name__", "") in ("element_size", "numel", "__get__x"):
            raise RuntimeError("not to be read")
        return super().__torch_function__(func, kinds, args, kwargs or {})


class Hostile(nn.Module):
    """A model that overrides what a visitor would call."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def named_parameters(self, *args, **kwargs):
        """Raise."""
        raise RuntimeError("not yours")

    def __repr__(self):
        raise RuntimeError("not shown")

    def __len__(self):
        raise RuntimeError("not counted")

    def __bool__(self):
        raise RuntimeError("not true")

    @property
    def device(self):
        """Raise."""
        raise RuntimeError("nowhere")


def with_parameter(parameter):
    """Return a layer that holds this parameter instead of its weight."""
    model = nn.Linear(2, 2)
    model._parameters["weight"] = parameter
    return model


def shared():
    """Return two layers with one weight, and a layer that is there twice."""
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    second.weight = first.weight
    return nn.Sequential(first, second, first)


def quantised():
    """Return a dynamically quantised model with a float layer beside it, or a plain one where there is no engine."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    if not [each for each in torch.backends.quantized.supported_engines if each != "none"]:
        return model
    return nn.Sequential(torch.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8), nn.Linear(2, 2))


def many():
    """Return a model of 100 000 parameters."""
    return nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(100000)])


def recursive():
    """Return a module that contains itself through a plain attribute."""
    model = nn.Linear(2, 2)
    object.__setattr__(model, "myself", model)
    return model


MODELS = {
    "none": nn.ReLU,
    "frozen": lambda: nn.Linear(2, 2).requires_grad_(False),
    "lazy": lambda: nn.LazyLinear(2),
    "meta": lambda: nn.Linear(2, 2, device="meta"),
    "mixed": lambda: nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, device="meta")),
    "shared": shared,
    "quantised": quantised,
    "sparse": lambda: with_parameter(nn.Parameter(torch.eye(2).to_sparse())),
    "complex": lambda: with_parameter(nn.Parameter(torch.zeros(2, 2, dtype=torch.complex64))),
    "half": lambda: nn.Linear(2, 2).half(),
    "no device": lambda: with_parameter(torch.zeros(2, 2).as_subclass(torch.Tensor).requires_grad_().detach().as_subclass(Subclass)),
    "raises": lambda: with_parameter(NoDevice(torch.zeros(2, 2))),
    "hostile": Hostile,
    "odd name": lambda: nn.ModuleDict({'\udcff\n"': nn.Linear(1, 1)}),
    "recursive": recursive,
    "scripted": lambda: torch.jit.script(nn.Linear(2, 2)),
    "many": many,
}


def attempt(call):
    """Return what came of it in words."""
    try:
        return type(call()).__name__
    except Exception as exc:
        return "%s: %s" % (type(exc).__name__, str(exc).split("\n")[0][:80])


def main():
    """Move and wrap each model, or say why not."""
    dist.init_process_group("gloo")
    told = {}
    for name, make in MODELS.items():
        model = make()
        told[name] = [attempt(lambda model=model: model.to("cpu")), attempt(lambda model=model: DistributedDataParallel(model, device_ids=[0]))]
        if name != "many":  # DDP itself takes minutes for them (torch 2.13); the check of device_ids comes before that
            told[name].append(attempt(lambda model=model: DistributedDataParallel(model)))
    told["no module"] = [attempt(lambda value=value: DistributedDataParallel(value)) for value in (None, 1, "x", nn.Linear, [nn.ReLU()], {})]
    dist.destroy_process_group()
    with open(sys.argv[1], "w") as file:
        json.dump(told, file)


if __name__ == "__main__":
    main()
