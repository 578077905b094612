"""Rank 2 builds a wider layer than the others: the width comes from a file that differs on its host.

Command: torchrun --nproc_per_node=3 09_other_shape_on_one_rank.py
Root cause to name: rank_dependent_model_build; rank 2 has another shape in backbone.0.weight.
"""

from datetime import timedelta

import torch.distributed as dist
from pieces import TinyModel, say
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Build and wrap."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    width = 24 if rank == 2 else 16
    model = TinyModel(width=width)
    say(rank, "model of width %d" % width)
    DistributedDataParallel(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
