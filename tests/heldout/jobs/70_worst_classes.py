"""After each epoch the losses of the worst classes are averaged over the ranks and shown."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from toolbox.reducing import mean_over_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

CLASSES = 6


class LossTable:
    def __init__(self):
        self.sums = torch.zeros(CLASSES)
        self.counts = torch.zeros(CLASSES)

    def add(self, losses, labels):
        self.sums.index_add_(0, labels, losses)
        self.counts.index_add_(0, labels, torch.ones(len(labels)))

    def means(self):
        return self.sums / self.counts.clamp(min=1)


def show_worst(table, epoch, rank):
    means = table.means()
    worst = means.topk(2).indices
    for label in worst.tolist():
        loss = mean_over_ranks(means[label])
        if rank == 0:
            print("epoch", epoch, "class", label, "loss", loss, flush=True)


def batch(rank, generator):
    labels = torch.randint(0, 3, (16,), generator=generator)
    if rank == 1:
        labels += 3
    return torch.randn(16, 4, generator=generator) + labels[:, None], labels


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, CLASSES)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(rank)
    for epoch in range(2):
        table = LossTable()
        for _ in range(5):
            inputs, labels = batch(rank, generator)
            losses = nn.functional.cross_entropy(model(inputs), labels, reduction="none")
            optimizer.zero_grad()
            losses.mean().backward()
            optimizer.step()
            table.add(losses.detach(), labels)
        show_worst(table, epoch, rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
