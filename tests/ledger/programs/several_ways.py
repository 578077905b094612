"""Trains a model with BatchNorm for a few steps on one rank, and reaches one all_reduce by two ways; one step's forward raises and is caught."""

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


class Picky(nn.Module):
    """Refuses one batch."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))

    def forward(self, inputs: Tensor) -> Tensor:
        """Raise at the third batch."""
        if inputs[0, 0] == 2:
            raise ValueError("not this one")
        return self.inner(inputs)


def reduced(value: float) -> float:
    """Add up a number over all ranks; two functions call it."""
    tensor = torch.tensor([value])
    dist.all_reduce(tensor)
    return tensor.item()


def log_loss(loss: Tensor) -> float:
    """Reduce a loss."""
    return reduced(loss.item())


def log_size(inputs: Tensor) -> float:
    """Reduce a size."""
    return reduced(float(len(inputs)))


def main() -> None:
    """Train."""
    dist.init_process_group("gloo")
    rows = torch.arange(5.0).repeat_interleave(8).reshape(10, 4)
    model = DistributedDataParallel(Picky())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for (inputs,) in DataLoader(TensorDataset(rows), batch_size=2):
        try:
            loss = model(inputs).sum()
        except ValueError:
            continue
        loss.backward()
        optimizer.step()
        log_loss(loss)
        log_size(inputs)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
