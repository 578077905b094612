"""Keeps the best weights by validation error."""

import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def validate(model, rank, epoch):
    # Each rank has a part of the validation set of its own.
    errors = [[3.0, 2.5, 2.2, 2.0, 1.9], [3.0, 2.8, 2.9, 2.1, 2.0]]
    with torch.no_grad():
        model.module(torch.zeros(1, 6))
    return errors[rank][epoch]


def save(model, path):
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), path)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    best = float("inf")
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(5):
            for _ in range(4):
                optimizer.zero_grad()
                model(torch.randn(8, 6)).pow(2).mean().backward()
                optimizer.step()
            error = validate(model, rank, epoch)
            if error < best:
                best = error
                save(model, os.path.join(folder, "best.pt"))
                dist.barrier()
    print("best", best, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
