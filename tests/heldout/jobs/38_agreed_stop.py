"""Evaluates on rank 0 without the wrapper, and stops when all have agreed to."""

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def evaluate(module):
    module.eval()
    with torch.no_grad():
        for _ in range(4):
            module(torch.randn(16, 5))
            time.sleep(0.3)
    module.train()


def wants_to_stop(rank, epoch):
    return epoch >= (2 if rank == 1 else 4)


def log_somewhere(rank):
    if rank == 1:
        raise OSError("no space left on the device of this rank")


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(4, 5)).abs().mean().backward()
            optimizer.step()
        if rank == 0:
            evaluate(model.module)
            dist.barrier()
        else:
            dist.barrier()
        try:
            log_somewhere(rank)
        except OSError:
            pass
        stop = torch.tensor(int(wants_to_stop(rank, epoch)))
        dist.all_reduce(stop, op=dist.ReduceOp.MAX)
        if stop:
            break
    if rank == 0:
        print("stopped after epoch", epoch, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
