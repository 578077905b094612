"""Rank 1 reduces int32 where the others reduce float32: as many bytes, so nothing fails, and every rank goes on with numbers that mean nothing.

Command: torchrun --nproc_per_node=2 08_different_dtypes_silent.py
Root cause to name: rank_divergent_control_flow; the same all_reduce has another dtype on each rank, and only a comparison shows it.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import say


def main() -> None:
    """Count the samples of all ranks."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    samples = torch.tensor([640], dtype=torch.int32) if rank == 1 else torch.tensor([640.0])
    dist.all_reduce(samples)
    say(rank, "samples seen by all ranks: %s" % samples.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
