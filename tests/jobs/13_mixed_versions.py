"""Two hosts have two versions of mmengine: the start script of rank 1 puts a second installation first on the path.

The versions can be made to differ on one machine only by a copy: 13_second_installation.sh makes one and changes its number.

Command: torchrun --nproc_per_node=2 --no_python bash 13_second_installation.sh python 13_mixed_versions.py
Root cause to name: version_skew_across_nodes; the job ends well, and only the versions, compared between ranks, show it.
"""

import gc
from datetime import timedelta

import mmengine
import torch
import torch.distributed as dist
from pieces import TinyModel, batches, say, train_step
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train three steps."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    rank = dist.get_rank()
    say(rank, "mmengine %s" % mmengine.__version__)
    model = DistributedDataParallel(TinyModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in batches(3, seed=rank):
        loss = train_step(model, optimizer, inputs, targets)
    say(rank, "training finished, loss %.4f" % loss)
    del model, optimizer  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
