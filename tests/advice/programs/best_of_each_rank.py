"""Each rank keeps the best of its own part of the validation set, and waits where it has found a better one."""

from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    """Train three steps or four."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=6))
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    errors = [[3.0, 2.5, 2.0], [3.0, 3.5, 2.9]][dist.get_rank()]
    best = float("inf")
    for error in errors:
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        if error < best:
            best = error
            dist.barrier()
    dist.destroy_process_group()
    print("kept %s\n" % best, end="", flush=True)  # In one write: both ranks print at once.


main()
