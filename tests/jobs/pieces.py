"""What the small training programs have in common: a model, its data, one step, and how a line of progress reads."""

from typing import Iterator, Tuple

import torch
from torch import Tensor, nn


class TinyModel(nn.Module):
    """A backbone and a head, small enough to train on any CPU."""

    def __init__(self, width: int = 16) -> None:
        """Build both parts."""
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, width), nn.ReLU())
        self.head = nn.Linear(width, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Answer one number a row."""
        return self.head(self.backbone(inputs))


def batches(count: int, seed: int = 0) -> Iterator[Tuple[Tensor, Tensor]]:
    """Yield inputs and targets of a synthetic dataset."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        inputs = torch.randn(4, 8, generator=generator)
        yield inputs, inputs.sum(dim=1, keepdim=True)


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, targets: Tensor) -> float:
    """Forward, backward, update; answer the loss."""
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def say(rank: int, text: str) -> None:
    """Print a line of progress the way training programs do."""
    print("[rank %d] %s" % (rank, text), flush=True)


def patience() -> int:
    """Answer for how many seconds the ranks of a job that hangs wait for each other; a test that looks at it meanwhile asks for more."""
    import os  # Here, as the recordings know the lines above by their numbers.

    return int(os.environ.get("JOB_PATIENCE", "8"))
