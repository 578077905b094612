"""A buffer has as many rows as this rank's share of the data has samples: DDP broadcasts it from rank 0, and gloo aborts the process.

Command: torchrun --nproc_per_node=2 09_buffer_shape_by_rank.py
Root cause to name: rank_dependent_buffer_shape; memory_bank has another shape on each rank.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import TinyModel, say
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Build with a memory bank and wrap."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    samples = len(range(rank, 1001, dist.get_world_size()))
    model = TinyModel()
    model.register_buffer("memory_bank", torch.zeros(samples, 16))
    say(rank, "memory bank for %d samples" % samples)
    DistributedDataParallel(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
