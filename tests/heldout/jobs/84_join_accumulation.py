"""Gradients of two batches make one step; the ranks have different numbers of batches, the last is small."""

import contextlib
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

EVERY = 2


def loader_of(rank):
    rows = 33 + 19 * rank
    inputs = torch.randn(rows, 5, generator=torch.Generator().manual_seed(rank))
    return DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=8)


def train_epoch(model, optimizer, loader):
    rows = 0
    with Join([model]):
        for number, (inputs, targets) in enumerate(loader, 1):
            whole = number % EVERY == 0
            with contextlib.nullcontext() if whole else model.no_sync():
                loss = nn.functional.mse_loss(model(inputs), targets)
                (loss / EVERY).backward()
            if whole:
                optimizer.step()
                optimizer.zero_grad()
            rows += len(inputs)
    optimizer.zero_grad()
    return rows


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(5, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    loader = loader_of(rank)
    for epoch in range(2):
        rows = torch.tensor(train_epoch(model, optimizer, loader))
        dist.all_reduce(rows)
        if rank == 0:
            print("epoch", epoch, "rows", rows.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
