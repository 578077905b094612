"""Rank 1 skips a step whose loss is not finite: it makes one backward pass less than the others, who wait in their last one.

Command: torchrun --nproc_per_node=3 08_backward_skipped_on_one_rank.py
Root cause to name: rank_divergent_control_flow; rank 1 is in the barrier behind the loop, the others in DDP's reduction of the last step.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import TinyModel, batches, patience, say
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train, leave out bad batches, meet at the end."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    model = DistributedDataParallel(TinyModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (inputs, targets) in enumerate(batches(5, seed=rank)):
        if rank == 1 and step == 2:
            inputs.div_(0.0)
        loss = nn.functional.mse_loss(model(inputs), targets)
        if not torch.isfinite(loss):
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        say(rank, "step %d" % step)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
