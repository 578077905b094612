"""Looks for the largest batch that fits; all ranks try, and all settle for what the smallest can bear."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

BUDGET = 3000


class Memory:
    """What a forward pass may hold, in numbers; a rank that also shows pictures has less left."""

    def __init__(self, rank):
        self.free = BUDGET - 900 * (rank == 0)

    def take(self, tensor):
        if tensor.numel() > self.free:
            raise MemoryError("%d numbers do not fit" % tensor.numel())


class BatchFinder:
    def __init__(self, network, memory):
        self.network = network
        self.memory = memory
        self.tries = 0

    def attempt(self, size):
        self.tries += 1
        hidden = self.network[0](torch.zeros(size, 6))
        self.memory.take(hidden)

    def search(self, size=512):
        while True:
            try:
                self.attempt(size)
                self.attempt(2 * size)
            except MemoryError:
                return self.agree(size)
            size *= 2

    def agree(self, size):
        fitting = size
        while fitting * 12 > self.memory.free:
            fitting //= 2
        least = torch.tensor(fitting)
        dist.all_reduce(least, op=dist.ReduceOp.MIN)
        return int(least)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 3))
    with torch.no_grad():
        size = BatchFinder(network, Memory(rank)).search(64 if rank == 0 else 16)
    model = DDP(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = torch.randn(512, 6, generator=torch.Generator().manual_seed(rank))
    for batch in data.split(size):
        loss = nn.functional.cross_entropy(model(batch), batch[:, :3].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("rank", rank, "batches of", size, "loss", loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
