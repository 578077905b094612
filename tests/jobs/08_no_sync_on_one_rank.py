"""Rank 1 calls no_sync() in one step more: the ranks make as many backward passes, and exchange gradients a different number of times.

Command: torchrun --nproc_per_node=2 08_no_sync_on_one_rank.py
Root cause to name: rank_stopped_participating; of two ranks nothing tells which one is wrong, so both.
"""

import contextlib
from datetime import timedelta

import torch.distributed as dist
from pieces import TinyModel, batches, say
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Accumulate gradients over two steps."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    model = DistributedDataParallel(TinyModel())
    for step, (inputs, _) in enumerate(batches(6)):
        skip = step % 2 == 0 or (rank == 1 and step == 3)
        with model.no_sync() if skip else contextlib.nullcontext():
            model(inputs).sum().backward()
    say(rank, "training finished")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
