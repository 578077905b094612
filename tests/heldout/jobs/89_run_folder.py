"""A run has a folder, which the main rank makes and all ranks write into."""

import os
import tempfile
from datetime import timedelta
from functools import cached_property

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Run:
    def __init__(self, rank):
        self.rank = rank

    @cached_property
    def folder(self):
        names = [tempfile.mkdtemp() if self.rank == 0 else None]
        dist.broadcast_object_list(names, src=0)
        return names[0]

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def save(self, network, optimizer):
        state = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, self.path("rank%d.pt" % self.rank))


class Journal:
    def __init__(self, run):
        self.run = run

    def write(self, *words):
        if self.run.rank != 0:
            return
        with open(self.run.path("journal.txt"), "a") as file:
            print(*words, file=file)


def batches(rank, count):
    generator = torch.Generator().manual_seed(rank)
    for _ in range(count):
        inputs = torch.randn(8, 5, generator=generator)
        yield inputs, inputs.prod(1, keepdim=True)


def train(model, optimizer, rank, journal):
    for step, (inputs, targets) in enumerate(batches(rank, 12)):
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            journal.write("step", step, "loss", loss.item())


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    run = Run(rank)
    journal = Journal(run)
    journal.write("training on", dist.get_world_size(), "ranks")
    model = DDP(nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    train(model, optimizer, rank, journal)
    run.save(model.module, optimizer)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
