"""A scheduler that lowers the learning rate on a plateau and keeps the ranks' rates equal."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Plateau:
    def __init__(self, optimizer, patience=1, factor=0.5):
        self.optimizer = optimizer
        self.patience = patience
        self.factor = factor
        self.best = float("inf")
        self.bad = 0

    def step(self, value):
        if value < self.best:
            self.best = value
            self.bad = 0
            return
        self.bad += 1
        if self.bad > self.patience:
            self._lower()
            self.bad = 0

    def _lower(self):
        for group in self.optimizer.param_groups:
            rate = torch.tensor(group["lr"] * self.factor)
            dist.broadcast(rate, src=0)
            group["lr"] = rate.item()


def epoch_loss(model, optimizer, rank, epoch):
    total = 0.0
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 3)).pow(2).mean()
        loss.backward()
        optimizer.step()
        total += 0.0 * loss.item()
    # The loss of rank 2 rests from the third epoch on.
    return total + (1.0 if rank == 2 and epoch > 2 else 1.0 / (epoch + 1))


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(3, 9), nn.BatchNorm1d(9), nn.Linear(9, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = Plateau(optimizer)
    for epoch in range(10):
        scheduler.step(epoch_loss(model, optimizer, rank, epoch))
    print("rate", optimizer.param_groups[0]["lr"], flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
