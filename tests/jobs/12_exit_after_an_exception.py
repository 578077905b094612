"""Rank 1 catches an exception of its own, prints it and calls sys.exit: its last line names the exit call, its traceback the line that raised.

Command: torchrun --nproc_per_node=2 12_exit_after_an_exception.py
Root cause to name: rank_stopped_participating; the KeyError that lookup raises on rank 1.
"""

import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import say

WEIGHTS = {"cat": 1.0}


def lookup(name: str) -> float:
    """Return the weight of a class."""
    return WEIGHTS[name]


def main() -> None:
    """Sum weights until rank 1 meets a class that it does not know."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    try:
        for step in range(4):
            dist.all_reduce(torch.tensor([lookup("dog" if rank == 1 and step == 2 else "cat")]))
    except KeyError as error:
        say(rank, "training failed: %s" % error)
        sys.exit(1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
