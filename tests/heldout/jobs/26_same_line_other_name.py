"""Averages what each rank has measured, by name."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist


class Averages:
    def __init__(self):
        self.sums = {}
        self.counts = {}

    def update(self, name, value):
        self.sums.setdefault(name, torch.zeros(1))
        self.sums[name] += value
        self.counts[name] = self.counts.get(name, 0) + 1

    def reduce(self):
        result = {}
        for name, value in self.sums.items():
            dist.all_reduce(value)
            result[name] = value.item() / self.counts[name] / dist.get_world_size()
        return result


def samples(rank, epoch):
    kinds = ["car", "person", "bicycle"]
    if rank == 1:
        kinds = kinds[1:] + kinds[:1]
    for number in range(9):
        kind = kinds[number % 3]
        yield kind, len(kind) + 0.1 * epoch


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    for epoch in range(4):
        averages = Averages()
        for kind, score in samples(rank, epoch):
            averages.update(kind, score)
        result = averages.reduce()
        if rank == 0:
            print("epoch", epoch, {name: round(value, 3) for name, value in result.items()}, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
