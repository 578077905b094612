"""What the programs here have in common: how this start is broken, and a model for it."""

import os

import torch
from torch import Tensor, nn

WAY = os.environ.get("WAY", "")  # raises, ddp or ends; empty when nothing is wrong. Each program marks its faulty lines with "# way: NAME".


class ToyModel(nn.Module):
    """Two layers, and a third that a run broken in the way "ddp" leaves out of the loss when it is asked to."""

    def __init__(self, unused: bool = False) -> None:
        """Build all three."""
        super().__init__()
        torch.manual_seed(0)
        self.net1, self.net2, self.net3 = nn.Linear(10, 10), nn.Linear(10, 5), nn.Linear(5, 5)
        self.unused = unused

    def forward(self, x: Tensor) -> Tensor:
        """Answer five numbers a row."""
        x = self.net2(torch.relu(self.net1(x)))
        return x if self.unused else self.net3(x)


def data(rank: int) -> Tensor:
    """Return a rank's batch."""
    return torch.randn(8, 10, generator=torch.Generator().manual_seed(rank))
