"""Heads of one shape are made in the order of a set of names: DDP matches them by position, so a head trains another head's weights.

Command: torchrun --nproc_per_node=2 09_hash_order_silent.py
Root cause to name: hash_seed_skew; nothing fails, and only the order of names, compared between ranks, shows it.
"""

import gc
from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import say
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TASKS = {"depth", "edges", "faces", "flow", "keypoints", "lanes", "masks", "normals", "poses", "signs"}


class Heads(nn.Module):
    """One head for each task."""

    def __init__(self) -> None:
        """Build them."""
        super().__init__()
        self.heads = nn.ModuleDict({task: nn.Linear(8, 1) for task in TASKS})

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Weigh the answers of all heads."""
        return torch.stack([self.heads[task](inputs) * (1 + index) for index, task in enumerate(sorted(self.heads))]).sum()


def main() -> None:
    """Train two steps."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    model = DistributedDataParallel(Heads())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(4, 8)).backward()
        optimizer.step()
    say(rank, "sum of heads.depth.weight: %.4f" % model.module.heads["depth"].weight.sum().item())
    del model, optimizer  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
