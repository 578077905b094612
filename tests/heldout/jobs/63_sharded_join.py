"""Distillation with an optimizer that is sharded; each rank has its own number of batches."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP


def batches(rank):
    count = 22 + 9 * rank
    data = torch.randn(count, 6, generator=torch.Generator().manual_seed(rank))
    yield from data.split(8)


class Distiller:
    def __init__(self):
        self.teacher = nn.Linear(6, 4)
        self.student = DDP(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)))
        parameters = self.student.parameters()
        self.optimizer = ZeroRedundancyOptimizer(parameters, torch.optim.Adam, lr=1e-2)

    def step(self, inputs):
        with torch.no_grad():
            wanted = self.teacher(inputs).argmax(1)
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.student(inputs), wanted)
        loss.backward()
        self.optimizer.step()
        return loss.item() * len(inputs), len(inputs)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    distiller = Distiller()
    for epoch in range(2):
        sums = torch.zeros(2)
        with Join([distiller.student, distiller.optimizer]):
            for inputs in batches(rank):
                sums += torch.tensor(distiller.step(inputs))
        dist.all_reduce(sums)
        if rank == 0:
            print("epoch", epoch, "loss", (sums[0] / sums[1]).item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
