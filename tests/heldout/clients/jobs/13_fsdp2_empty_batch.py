"""FSDP2 on texts that are filtered by length."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard


def batches(rank):
    generator = torch.Generator().manual_seed(rank)
    for number in range(10):
        lengths = torch.randint(1, 20, (6,), generator=generator)
        if rank == 1 and number == 6:
            lengths = lengths + 30  # A file of long texts.
        yield lengths


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "20"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(40, 8), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    for layer in (model[1], model[3]):
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for lengths in batches(rank):
        kept = lengths[lengths < 24]
        if len(kept) == 0:
            continue
        loss = model(kept).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("rank", rank, "done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
