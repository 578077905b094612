"""The dataset does not divide by the number of ranks, and nothing evens it out: rank 1 has three batches, rank 0 has four.

Command: torchrun --nproc_per_node=2 08_uneven_batches.py
Root cause to name: uneven_batches; rank 1 has left the loop and stands at the barrier, rank 0 waits in backward.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import TinyModel, batches, patience, say, train_step
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train one epoch of what this rank was given."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(TinyModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    mine = list(batches(7))[rank::world_size]
    for step, (inputs, targets) in enumerate(mine):
        loss = train_step(model, optimizer, inputs, targets)
        say(rank, "Epoch(train) [1][%d/%d] loss: %.4f" % (step + 1, len(mine), loss))
    dist.barrier()
    say(rank, "epoch finished")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
