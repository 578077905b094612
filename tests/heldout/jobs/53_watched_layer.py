"""The activations of a layer are watched by a hook while the settings ask for it."""

import os
from dataclasses import dataclass, field
from datetime import timedelta
from typing import List

import torch
import torch.distributed as dist
from torch import nn


@dataclass
class Settings:
    steps: int = 6
    watch: List[str] = field(default_factory=list)


def settings_of(rank):
    if rank == 0:
        return Settings(watch=["1"])  # One rank is enough for the plot.
    return Settings()


class ActivationMean:
    def __init__(self, name):
        self.name = name
        self.values = []

    def __call__(self, module, inputs, output):
        mean = output.detach().mean()
        dist.all_reduce(mean)
        self.values.append(mean.item() / dist.get_world_size())


def attach(model, names):
    layers = dict(model.named_children())
    return [layers[name].register_forward_hook(ActivationMean(name)) for name in names]


def shared_loss(loss):
    total = loss.detach().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(rank)
    settings = settings_of(rank)
    model = nn.Sequential(nn.Linear(5, 9), nn.ReLU(), nn.Linear(9, 1))
    handles = attach(model, settings.watch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(settings.steps):
        optimizer.zero_grad()
        loss = model(torch.randn(6, 5)).square().mean()
        loss.backward()
        optimizer.step()
        print("rank", rank, "step", step, "loss", round(shared_loss(loss), 4), flush=True)
    for handle in handles:
        handle.remove()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
