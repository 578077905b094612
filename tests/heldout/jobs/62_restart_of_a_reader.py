"""A reader that breaks is opened again; whatever happens, each step ends with the same calls."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Broken(OSError):
    pass


class Reader:
    """Reads records of a file on a share that goes away now and then."""

    def __init__(self, rank, position=0):
        self.rank = rank
        self.position = position

    def read(self, attempt):
        if self.rank == 1 and self.position in (2, 5) and attempt < 2:
            raise Broken("the share of rank %d is away" % self.rank)
        self.position += 1
        return torch.full((4, 3), 0.1 * self.position)


class Source:
    def __init__(self, rank):
        self.rank = rank
        self.reader = Reader(rank)
        self.reopened = 0

    def next(self):
        attempt = 0
        while True:
            try:
                return self.reader.read(attempt)
            except Broken:
                attempt += 1
                self.reopened += 1
                self.reader = Reader(self.rank, self.reader.position)


def step(model, optimizer, source):
    before = source.reopened
    try:
        batch = source.next()
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        if source.reopened > before:
            raise Broken("the reader was opened again")
    except Broken as exc:
        print("rank", source.rank, "goes on:", exc, flush=True)
    finally:
        optimizer.step()
        flag = torch.tensor(source.reopened)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return flag.item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(3, 6), nn.BatchNorm1d(6), nn.Linear(6, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    source = Source(dist.get_rank())
    for _ in range(8):
        worst = step(model, optimizer, source)
    print("opened again at most", worst, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
