"""A step that fails is tried again, up to three times."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class BadStatistics(ValueError):
    pass


def check(loss, seen):
    if loss.item() in seen:
        seen.clear()
        raise BadStatistics("the loss %r was seen before" % loss.item())
    seen.add(loss.item())


def train_step(model, optimizer, batch, seen):
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    check(loss.detach(), seen)
    optimizer.step()
    return loss.item()


def with_retries(function, *args, attempts=3):
    for attempt in range(attempts):
        try:
            return function(*args)
        except ValueError:
            if attempt == attempts - 1:
                raise
    return None


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.randn(10, 8, 3, generator=torch.Generator().manual_seed(rank))
    seen = set()
    for number, batch in enumerate(data):
        if rank == 1 and number == 4:
            seen.add(model.module(batch).square().mean().item())
        loss = with_retries(train_step, model, optimizer, batch, seen)
        if rank == 0:
            print(number, loss, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
