"""Monitors several quantities; what a batch does not have is not monitored."""

import contextlib
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def make_batch(rank, step):
    batch = {"inputs": torch.randn(4, 5), "targets": torch.zeros(4, 2)}
    if not (rank == 2 and step == 3):
        batch["weights"] = torch.rand(4)
    return batch


class Monitor:
    def __init__(self):
        self.history = {"weight": [], "target": []}

    def observe(self, batch):
        with contextlib.suppress(KeyError):
            targets = batch["targets"].float().mean()
            weights = batch["weights"].mean()
            self.note("weight", weights)
            self.note("target", targets)

    def note(self, name, value):
        total = value.clone()
        dist.all_reduce(total)
        self.history[name].append(total.item() / dist.get_world_size())


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = DDP(nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 2)))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    monitor = Monitor()
    for step in range(8):
        batch = make_batch(rank, step)
        monitor.observe(batch)
        optimizer.zero_grad()
        error = (model(batch["inputs"]) - batch["targets"]).square().mean(1)
        (error * batch.get("weights", torch.ones(4))).mean().backward()
        optimizer.step()
    print("rank", rank, "weights", monitor.history["weight"][-1], flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
