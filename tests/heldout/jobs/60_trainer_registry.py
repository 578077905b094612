"""A trainer whose callbacks are made by name, from settings that an environment variable can widen."""

import os
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Tuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

REGISTRY = {}


def callback(cls):
    REGISTRY[cls.__name__] = cls
    return cls


def shared(value, op):
    tensor = torch.tensor([float(value)])
    dist.all_reduce(tensor, op=op)
    return tensor.item()


largest = partial(shared, op=dist.ReduceOp.MAX)


@dataclass(frozen=True)
class Settings:
    steps: int = 12
    callbacks: Tuple[str, ...] = ("Ema",)


@callback
class Ema:
    def __init__(self, trainer):
        self.weights = [parameter.detach().clone() for parameter in trainer.model.parameters()]

    def after_step(self, trainer):
        for average, parameter in zip(self.weights, trainer.model.parameters()):
            average.lerp_(parameter.detach(), 0.1)


@callback
class GradientReport:
    def __init__(self, trainer):
        self.rows = []

    def after_step(self, trainer):
        if trainer.step % 4 == 0:
            norm = max(parameter.grad.norm().item() for parameter in trainer.model.parameters())
            self.rows.append(largest(norm))


class Trainer:
    def __init__(self, settings):
        self.settings = settings
        self.model = DDP(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.step = 0
        self.callbacks = [REGISTRY[name](self) for name in settings.callbacks]

    def fit(self):
        while self.step < self.settings.steps:
            self.step += 1
            self.optimizer.zero_grad()
            self.model(torch.randn(4, 4)).square().mean().backward()
            self.optimizer.step()
            for member in self.callbacks:
                member.after_step(self)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    if dist.get_rank() == 3:
        os.environ["DEBUG_GRADIENTS"] = "1"  # Set in the shell of one machine.
    settings = Settings()
    if os.environ.get("DEBUG_GRADIENTS"):
        settings = replace(settings, callbacks=(*settings.callbacks, "GradientReport"))
    torch.manual_seed(0)
    Trainer(settings).fit()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
