"""A head that the loss does not use: DDP waits for its gradients, and the second iteration says so.

Command: torchrun --nproc_per_node=2 08_unused_parameter.py
Root cause to name: unused_parameters, on every rank; auxiliary.weight and auxiliary.bias get no gradient.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import TinyModel, batches, say, train_step
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class WithAuxiliaryHead(TinyModel):
    """A model whose second head takes no part in forward."""

    def __init__(self) -> None:
        """Add the head."""
        super().__init__()
        self.auxiliary = nn.Linear(16, 4)


def main() -> None:
    """Train two steps."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    model = DistributedDataParallel(WithAuxiliaryHead())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (inputs, targets) in enumerate(batches(2, seed=rank)):
        say(rank, "step %d loss %.4f" % (step, train_step(model, optimizer, inputs, targets)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
