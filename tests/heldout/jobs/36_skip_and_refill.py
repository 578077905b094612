"""A sample that is broken is replaced by the next one, until the number of steps is reached."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def stream(rank):
    number = 0
    while True:
        broken = rank == 1 and number in (2, 3, 7)
        yield None if broken else torch.full((4, 6), 0.1 * number)
        number += 1


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    done = skipped = 0
    for batch in stream(rank):
        if batch is None:
            skipped += 1
            continue
        optimizer.zero_grad()
        try:
            weight = 1.0 / skipped
        except ZeroDivisionError:
            weight = 1.0
        (model(batch).pow(2).mean() * weight).backward()
        optimizer.step()
        done += 1
        if done == 15:
            break
    count = torch.tensor(skipped)
    dist.all_reduce(count)
    if rank == 0:
        print("steps", done, "skipped on all ranks", count.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
