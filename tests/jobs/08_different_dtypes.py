"""Rank 1 counts in float64 where the others count in float32: as many elements, twice the bytes, and gloo aborts the process.

Command: torchrun --nproc_per_node=2 08_different_dtypes.py
Root cause to name: rank_divergent_control_flow; the same all_reduce has another dtype on each rank.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import say


def main() -> None:
    """Sum the confusion matrix over all ranks."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    matrix = torch.zeros(64, 64)
    if rank == 1:
        matrix = matrix + torch.ones(64, 64, dtype=torch.float64)  # Weighted by class frequencies, which numpy keeps as doubles.
    dist.all_reduce(matrix)
    say(rank, "confusion matrix sums to %.1f" % matrix.sum().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
