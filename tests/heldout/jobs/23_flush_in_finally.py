"""Metrics are flushed whatever becomes of the epoch."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Metrics:
    def __init__(self):
        self.total = torch.zeros(1)

    def add(self, value):
        self.total += value

    def flush(self):
        dist.reduce(self.total, dst=0)
        self.total.zero_()


def read_label(rank, epoch, step):
    text = "three" if (rank, epoch, step) == (1, 1, 3) else str(step % 3)
    return int(text)


def run_epoch(model, optimizer, metrics, rank, epoch):
    try:
        for step in range(6):
            label = read_label(rank, epoch, step)
            loss = nn.functional.cross_entropy(model(torch.randn(1, 4)), torch.tensor([label]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            metrics.add(loss.item())
    finally:
        metrics.flush()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    metrics = Metrics()
    for epoch in range(3):
        try:
            run_epoch(model, optimizer, metrics, rank, epoch)
        except ValueError:
            print("epoch", epoch, "ended early on rank", rank, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
