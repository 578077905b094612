"""The heads are made in the order of a set of names, and that order depends on the hash seed, which every process draws for itself.

Command: torchrun --nproc_per_node=2 09_hash_order.py
Root cause to name: hash_seed_skew; the ranks have the same parameters in another order, and PYTHONHASHSEED is not set.
"""

from datetime import timedelta

import torch.distributed as dist
from pieces import say
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TASKS = {"depth", "edges", "faces", "flow", "keypoints", "lanes", "masks", "normals", "poses", "signs"}


def main() -> None:
    """Build one head for each task, each with a width of its own, and wrap."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    heads = nn.ModuleDict({task: nn.Linear(16, 1 + sorted(TASKS).index(task)) for task in TASKS})
    say(dist.get_rank(), "heads: %s" % ", ".join(heads))
    DistributedDataParallel(heads)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
