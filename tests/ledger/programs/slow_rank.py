"""A data-parallel training on CPU in which one rank is slower, by sleeping: argv are the slow rank (-1: none), the part, the way, and the steps.

The work of every rank is a sleep too, so that the load of the machine does not decide who is late.
"""

import sys
import time
from typing import List

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORK, MORE = 0.05, 0.03


class Batches(Dataset):  # type: ignore[type-arg]  # not subscriptable in torch 1.12
    """Batches that take a moment to come."""

    def __init__(self, count: int, delay: float) -> None:
        self.count, self.delay = count, delay

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(self.delay)
        return torch.ones(4)


class Sleeper(nn.Module):
    """A layer whose forward pass takes a while."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.seconds = seconds

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Sleep, then compute."""
        time.sleep(self.seconds)
        return self.layer(batch)


def main() -> None:
    """Train, by DistributedDataParallel or with a plain all_reduce in a job without gradients."""
    slow, part, way, steps = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    dist.init_process_group("gloo")
    more = {name: MORE if dist.get_rank() == slow and part == name else 0.0 for name in ("forward", "dataloader", "elsewhere")}
    batches = DataLoader(Batches(steps, more["dataloader"]), batch_size=1)
    if way == "ddp":
        model = nn.parallel.DistributedDataParallel(Sleeper(WORK + more["forward"]))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for batch in batches:
            optimizer.zero_grad()
            model(batch).sum().backward()
            time.sleep(more["elsewhere"])
            optimizer.step()
    else:
        total: List[torch.Tensor] = []
        for batch in batches:
            time.sleep(WORK + more["elsewhere"])
            dist.all_reduce(batch)
            total.append(batch)
    dist.barrier()
    dist.destroy_process_group()


main()
