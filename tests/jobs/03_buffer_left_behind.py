"""The parameters are on the card and a buffer, registered after the move, is on the CPU: DDP takes the model, its first step fails.

Command: torchrun --nproc_per_node=2 03_buffer_left_behind.py
Root cause to name: buffer_on_cpu_with_nccl, on every rank: the buffer scale.
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_gcu
from pieces import TinyModel, batches, train_step
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel


class Scaled(TinyModel):
    """A model that multiplies its inputs by a buffer."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Scale, then answer one number a row."""
        return super().forward(inputs * self.scale)


def main() -> None:
    """Move, register a buffer, wrap, train a step."""
    local_rank = int(os.environ["LOCAL_RANK"])
    torch_gcu.set_device(local_rank)
    dist.init_process_group("eccl", timeout=timedelta(seconds=10))
    card = torch.device(torch_gcu.DEVICE_TYPE, local_rank)
    model = Scaled().to(card)
    model.register_buffer("scale", torch.ones(8))
    wrapped = DistributedDataParallel(model)
    for inputs, targets in batches(1):
        train_step(wrapped, torch.optim.SGD(wrapped.parameters(), lr=0.01), inputs.to(card), targets.to(card))


if __name__ == "__main__":
    main()
