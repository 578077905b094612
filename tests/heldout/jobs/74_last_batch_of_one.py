"""Fifty-one samples on two ranks, in batches of twelve."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Subset


class Rows(Dataset):
    def __init__(self, count):
        self.inputs = torch.randn(count, 7, generator=torch.Generator().manual_seed(3))

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        row = self.inputs[index]
        return row, (row[0] * row[1] > 0).long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(7, 20)
        self.norm = nn.BatchNorm1d(20)
        self.outer = nn.Linear(20, 2)

    def forward(self, inputs):
        return self.outer(torch.relu(self.norm(self.inner(inputs))))


def shard_loader(rank, world):
    rows = Rows(51)
    shard = Subset(rows, range(rank, len(rows), world))
    return DataLoader(shard, batch_size=12)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = shard_loader(rank, dist.get_world_size())
    for epoch in range(3):
        total = 0.0
        for inputs, labels in loader:
            logits = model(inputs)
            loss = nn.functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("rank", rank, "epoch", epoch, "loss", total / len(loader), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
