"""The head learns first; the encoder joins in once the loss is small."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Plan:
    def __init__(self, limit):
        self.limit = limit
        self.encoder_learns = False

    def after_epoch(self, losses):
        if sum(losses) / len(losses) < self.limit:
            self.encoder_learns = True


class Trainer:
    def __init__(self, plan):
        self.plan = plan
        self.encoder = DDP(nn.Sequential(nn.Linear(5, 12), nn.BatchNorm1d(12), nn.Tanh()))
        self.head = DDP(nn.Linear(12, 1))
        self.encoder_optimizer = torch.optim.SGD(self.encoder.parameters(), lr=1e-3)
        self.head_optimizer = torch.optim.SGD(self.head.parameters(), lr=1e-2)

    def features(self, inputs):
        if self.plan.encoder_learns:
            return self.encoder(inputs)
        with torch.no_grad():
            return self.encoder.module(inputs)

    def step(self, inputs, targets):
        loss = nn.functional.mse_loss(self.head(self.features(inputs)), targets)
        self.encoder_optimizer.zero_grad()
        self.head_optimizer.zero_grad()
        loss.backward()
        self.head_optimizer.step()
        if self.plan.encoder_learns:
            self.encoder_optimizer.step()
        return loss.item()


def batches(rank, epoch):
    generator = torch.Generator().manual_seed(31 * epoch + rank)
    for _ in range(4):
        inputs = torch.randn(16, 5, generator=generator)
        yield inputs, inputs[:, :1] * (0.1 if rank == 1 else 9.0)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    plan = Plan(limit=5.0)
    trainer = Trainer(plan)
    for epoch in range(4):
        losses = [trainer.step(inputs, targets) for inputs, targets in batches(rank, epoch)]
        plan.after_epoch(losses)
        print("rank", rank, "epoch", epoch, "loss", losses[-1], flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
