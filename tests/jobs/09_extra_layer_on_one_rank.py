"""Rank 2 builds one layer more than the others: the number of classes is read from the files that this rank has seen.

Command: torchrun --nproc_per_node=3 09_extra_layer_on_one_rank.py
Root cause to name: rank_dependent_model_build; rank 2 has two parameters more than ranks 0 and 1.
"""

from datetime import timedelta

import torch.distributed as dist
from pieces import TinyModel, say
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Build and wrap."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    model = TinyModel()
    has_segmentation_labels = rank == 2
    if has_segmentation_labels:
        model.segmentation_head = nn.Linear(16, 4)
    say(rank, "model with %d parameters" % len(list(model.parameters())))
    DistributedDataParallel(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
