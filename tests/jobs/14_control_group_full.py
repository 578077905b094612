"""Rank 1 keeps each batch that it has seen, until the control group of the job is full and the kernel kills it.

Command: bash 14_in_control_group.sh torchrun --nproc_per_node=2 14_control_group_full.py
Root cause to name: host_out_of_memory, on rank 1, by the kernel's own count; rank 0 loses its peer.
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import TinyModel, batches, say, train_step
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train until rank 1 is gone."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank = dist.get_rank()
    model = DistributedDataParallel(TinyModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for step, (inputs, targets) in enumerate(batches(5, seed=rank)):
        say(rank, "step %d loss %.4f" % (step, train_step(model, optimizer, inputs, targets)))
        while rank == 1 and step == 2:
            kept.append(os.urandom(1 << 20) * 64)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
