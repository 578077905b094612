"""Rank 0 validates alone for longer than the process group waits; the others stand at the next barrier.

Command: torchrun --nproc_per_node=2 08_long_validation_on_rank0.py
Root cause to name: rank0_long_work_timeout; rank 1 raises, rank 0 is the one that was late.
"""

import time
from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import TinyModel, batches, patience, say, train_step
from torch.nn.parallel import DistributedDataParallel


def validate(model: TinyModel) -> float:
    """Run the metric that takes its time."""
    total = 0.0
    for index, (inputs, targets) in enumerate(batches(patience() + 4)):
        total += (model(inputs) - targets).abs().mean().item()
        time.sleep(1)
        say(0, "Epoch(val) [1][%d/%d]" % (index + 1, patience() + 4))
    return total / (patience() + 4)


def main() -> None:
    """Train, validate on one rank, go on."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    model = DistributedDataParallel(TinyModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in batches(3, seed=rank):
        train_step(model, optimizer, inputs, targets)
    if rank == 0:
        say(rank, "metric %.3f" % validate(model.module))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
