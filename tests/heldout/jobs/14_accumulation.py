"""Accumulates gradients over four batches; only the last one is synchronised."""

import contextlib
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

ACCUMULATE = 4


def samples(rank):
    generator = torch.Generator().manual_seed(rank)
    for number in range(33):
        label = None if rank == 1 and number == 9 else number % 3
        yield {"pixels": torch.randn(2, 6, generator=generator), "label": label}


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    micro = updates = 0
    for sample in samples(rank):
        if sample["label"] is None:
            continue
        micro += 1
        last = micro % ACCUMULATE == 0
        with contextlib.nullcontext() if last else model.no_sync():
            output = model(sample["pixels"])
            loss = nn.functional.cross_entropy(output, torch.full((2,), sample["label"]))
            (loss / ACCUMULATE).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
            updates += 1
            dist.barrier()
            if updates % 4 == 0:
                mean = loss.detach().clone()
                dist.all_reduce(mean)
    if micro % ACCUMULATE:
        print("rank", rank, "has a rest of", micro % ACCUMULATE, flush=True)
        flag = torch.ones(1)
        dist.all_reduce(flag)
        optimizer.step()
    print("rank", rank, "updates", updates, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
