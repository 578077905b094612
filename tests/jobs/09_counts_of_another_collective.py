"""Rank 0 gathers the sizes of the datasets while rank 1 already wraps its model: DDP's check takes the size for a number of parameters.

Command: torchrun --nproc_per_node=2 09_counts_of_another_collective.py
Root cause to name: rank_divergent_control_flow; the models are the same, and the "inconsistent" number is somebody else's.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import TinyModel, say
from torch.nn.parallel import DistributedDataParallel


def gather_sizes(size: int) -> int:
    """Add up the sizes of all ranks' datasets."""
    sizes = [torch.zeros(1, dtype=torch.long) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, torch.tensor([size]))
    return sum(int(one) for one in sizes)


def main() -> None:
    """Count on one rank, wrap on all."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    if rank == 0:
        say(rank, "dataset of %d images" % gather_sizes(118287))
    DistributedDataParallel(TinyModel())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
