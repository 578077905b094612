"""Two ranks that make equal calls at different lines, as programs do that are right: the arms of an `if`, roots in turn, ranks in turn.

Command: torchrun --nproc_per_node=2 00_healthy_branches.py
Root cause to name: none; at each number of the group the two ranks make the same call, at whatever line.
"""

import random
from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import patience, say


def in_turn(rank: int) -> None:
    """Let one rank work after the other."""
    for _ in range(rank):
        dist.barrier()
    for _ in range(2 - rank):
        dist.barrier()


def share(rank: int) -> float:
    """Send from each rank in its turn, and take what the others send."""
    total = 0.0
    for turn in range(2):
        if turn == rank:
            tensor = torch.tensor([float(rank + 1)])
            dist.broadcast(tensor, src=turn)
        else:
            tensor = torch.zeros(1)
            dist.broadcast(tensor, src=turn)
        total += tensor.item()
    return total


def main() -> None:
    """Sum what each rank has found, or nothing for a rank that has found nothing."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    draws = random.Random(rank)
    boxes = 0.0
    for _ in range(20):
        if draws.random() < 0.5:
            count = torch.ones(1)
            dist.all_reduce(count)
        else:
            count = torch.zeros(1)
            dist.all_reduce(count)
        boxes += count.item()
    shared = share(rank)
    in_turn(rank)
    say(rank, "boxes %.0f shared %.0f" % (boxes, shared))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
