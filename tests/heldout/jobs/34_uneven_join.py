"""Ranks have different numbers of batches and train under join."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    count = 32 + 8 * rank + (3 if rank == 2 else 0)
    loader = DataLoader(TensorDataset(torch.randn(count, 5)), batch_size=8)
    model = DDP(nn.Sequential(nn.Linear(5, 5), nn.BatchNorm1d(5), nn.Linear(5, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        seen = 0
        with model.join():
            for (inputs,) in loader:
                optimizer.zero_grad()
                model(inputs).pow(2).mean().backward()
                optimizer.step()
                seen += len(inputs)
        total = torch.tensor(seen)
        dist.all_reduce(total)
        if rank == 0:
            print("epoch", epoch, "samples", total.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
