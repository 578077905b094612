"""One cycle of the learning rate; a rank with fewer batches begins its data again."""

import os
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Plan:
    loader: DataLoader
    epochs: int = 3
    peak: float = 0.1

    @property
    def total_steps(self):
        return self.epochs * len(self.loader)


def shard(rank):
    count = 112 if rank == 1 else 128
    inputs = torch.randn(count, 6, generator=torch.Generator().manual_seed(rank))
    return DataLoader(TensorDataset(inputs, inputs[:, :3].argmax(1)), batch_size=16, shuffle=True)


def endless(loader):
    while True:
        yield from loader


def longest(loader):
    steps = torch.tensor(len(loader))
    dist.all_reduce(steps, op=dist.ReduceOp.MAX)
    return int(steps)


class Trainer:
    def __init__(self, model, plan):
        self.model = model
        self.plan = plan
        self.optimizer = torch.optim.SGD(model.parameters(), lr=plan.peak, momentum=0.9)
        self.scheduler = self.make_scheduler()
        self.batches = endless(plan.loader)
        self.steps = longest(plan.loader)

    def make_scheduler(self):
        scheduler = torch.optim.lr_scheduler.OneCycleLR
        return scheduler(self.optimizer, max_lr=self.plan.peak, total_steps=self.plan.total_steps)

    def epoch(self):
        total = 0.0
        for _ in range(self.steps):
            inputs, labels = next(self.batches)
            loss = nn.functional.cross_entropy(self.model(inputs), labels)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
            total += loss.item()
        return total / self.steps


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3)))
    plan = Plan(shard(rank))
    trainer = Trainer(model, plan)
    for number in range(plan.epochs):
        loss = trainer.epoch()
        if rank == 0:
            print("epoch", number, "loss", loss, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
