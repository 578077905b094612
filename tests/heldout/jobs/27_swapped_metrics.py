"""Reports precision and recall; small sets take the exact way."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Evaluator:
    def __init__(self, size):
        self.size = size
        self.precision = torch.tensor([0.9])
        self.recall = torch.tensor([0.4])

    def mean(self, value):
        dist.all_reduce(value)
        return value / dist.get_world_size()

    def summary(self):
        if self.size < 100:
            recall = self.mean(self.recall.clone())
            precision = self.mean(self.precision.clone())
        else:
            precision = self.mean(self.precision.clone())
            recall = self.mean(self.recall.clone())
        return precision.item(), recall.item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    evaluator = Evaluator(size=103 if rank == 0 else 97)
    for epoch in range(3):
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.randn(2, 4)).square().mean().backward()
            optimizer.step()
        precision, recall = evaluator.summary()
        print("rank", rank, "epoch", epoch, "precision", precision, "recall", recall, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
