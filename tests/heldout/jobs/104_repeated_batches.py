"""Shards of different sizes: a rank that is through repeats its last batch with a weight of zero."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


class EvenLoader:
    def __init__(self, loader):
        self.loader = loader
        steps = torch.tensor(len(loader))
        dist.all_reduce(steps, op=dist.ReduceOp.MAX)
        self.steps = int(steps)

    def __iter__(self):
        last, left = None, self.steps
        for last in self.loader:
            yield (*last, 1.0)
            left -= 1
        while left:
            yield (*last, 0.0)
            left -= 1


class Trainer:
    def __init__(self, model, accumulate=2):
        self.model = model
        self.accumulate = accumulate
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        self.real = 0

    def weighted(self, inputs, targets, weight):
        if not weight:
            return 0.0 * self.model(inputs).sum()
        self.real += 1
        return nn.functional.mse_loss(self.model(inputs), targets)

    def epoch(self, batches):
        for number, (inputs, targets, weight) in enumerate(batches, 1):
            if number % self.accumulate and number < batches.steps:
                with self.model.no_sync():
                    self.weighted(inputs, targets, weight).backward()
                continue
            self.weighted(inputs, targets, weight).backward()
            self.optimizer.step()
            self.optimizer.zero_grad()


def shard(rank):
    count = [64, 40, 56][rank]
    inputs = torch.randn(count, 5, generator=torch.Generator().manual_seed(rank))
    return DataLoader(TensorDataset(inputs, inputs.mean(1, keepdim=True)), batch_size=8, num_workers=1)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(5, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 1)))
    trainer = Trainer(model)
    batches = EvenLoader(shard(rank))
    for _ in range(3):
        trainer.epoch(batches)
    real = torch.tensor(trainer.real)
    dist.reduce(real, 0)
    if rank == 0:
        print("batches that counted", int(real), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
