"""Averages the loss of all ranks every few seconds; the steps average the gradients by hand."""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn


class Meter:
    def __init__(self, every):
        self.every = every
        self.last = time.monotonic()
        self.mean = None

    def update(self, values):
        if time.monotonic() - self.last >= self.every:
            self.last = time.monotonic()
            self.report(values)

    def report(self, values):
        self.reduce(values.clone())

    def reduce(self, values):
        self.average(values)

    def average(self, values):
        self.mean = self.over_ranks(values)

    def over_ranks(self, values):
        return self.divide(self.sum_of(values))

    def sum_of(self, values):
        return self.in_group(values, dist.group.WORLD)

    def in_group(self, values, group):
        dist.all_reduce(values, group=group)
        return values

    def divide(self, values):
        return values / dist.get_world_size()


class Training:
    def __init__(self, rank):
        torch.manual_seed(0)
        self.model = nn.Linear(3, 1, bias=False)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        if rank == 1:
            time.sleep(0.5)  # Reads the index of its files.
        self.meter = Meter(every=2.0)
        self.rank = rank

    def step(self, number):
        loss = self.model(torch.full((2, 3), 1.0 + self.rank)).pow(2).mean()
        loss.backward()
        gradient = self.model.weight.grad
        dist.all_reduce(gradient)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.meter.update(torch.tensor([[loss.item(), number, 1.0]]))


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "20"))))
    training = Training(dist.get_rank())
    for number in range(46):
        training.step(number)
        time.sleep(0.05)
    if dist.get_rank() == 1:
        print("mean of all", training.meter.mean.tolist(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
