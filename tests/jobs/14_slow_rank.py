"""Rank 1 takes half as long again for its forward pass as the two others, in each step, and these wait for it. Nothing fails.

Command: torchrun --nproc_per_node=3 14_slow_rank.py
Root cause to name: one_rank_late; rank 1, in its forward pass.
"""

import time
from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import TinyModel, batches, say, train_step
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel


class SlowModel(TinyModel):
    """Sleeps before it computes, so that the load of the machine does not decide who is late."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Answer one number a row, after a while."""
        time.sleep(0.15 if dist.get_rank() == 1 else 0.1)
        return super().forward(inputs)


def main() -> None:
    """Train for thirty steps."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank = dist.get_rank()
    model = DistributedDataParallel(SlowModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in batches(30, seed=rank):
        train_step(model, optimizer, inputs, targets)
    say(rank, "training finished")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
