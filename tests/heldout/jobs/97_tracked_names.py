"""Metrics are switched on by name; the values of all ranks are averaged for the log."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

DEFAULT = {"accuracy", "confidence", "entropy", "margin"}
EXTRA = {"norm", "spread", "accuracy"}


def measure(logits, labels):
    probabilities = logits.softmax(1)
    top = probabilities.topk(2, 1).values
    return {
        "accuracy": (logits.argmax(1) == labels).float().mean(),
        "confidence": top[:, 0].mean(),
        "entropy": -(probabilities * probabilities.clamp_min(1e-9).log()).sum(1).mean(),
        "margin": (top[:, 0] - top[:, 1]).mean(),
        "norm": logits.norm(dim=1).mean(),
        "spread": logits.std(0).mean(),
    }


class Metrics:
    def __init__(self, *groups):
        self.tracked = set().union(*groups)
        self.sums = {name: torch.zeros(()) for name in self.tracked}
        self.count = 0

    def update(self, logits, labels):
        for name, value in measure(logits, labels).items():
            if name in self.tracked:
                self.sums[name] += value
        self.count += 1

    def averages(self):
        result = {}
        for name in self.tracked:
            value = self.sums[name] / self.count
            dist.all_reduce(value)
            result[name] = value.item() / dist.get_world_size()
        return result


def batches(rank, epoch):
    generator = torch.Generator().manual_seed(100 * epoch + rank)
    for _ in range(5):
        inputs = torch.randn(16, 6, generator=generator)
        yield inputs, inputs[:, :4].argmax(1)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        metrics = Metrics(DEFAULT, EXTRA)
        for inputs, labels in batches(rank, epoch):
            logits = model(inputs)
            loss = nn.functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            metrics.update(logits.detach(), labels)
        averages = metrics.averages()
        if rank == 0:
            print("epoch", epoch, averages, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
