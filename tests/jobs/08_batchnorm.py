"""A model with BatchNorm, whose buffers DDP sends at the begin of each forward, on three ranks; one of them takes another way, as the argument says.

Command: torchrun --nproc_per_node=3 08_batchnorm.py evaluates
Root cause to name: rank_divergent_control_flow; the ranks wait for each other in forward and backward, which no collective of the job shows.
"""

import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import patience, say
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

WAY = sys.argv[1]


def rows(count: int) -> TensorDataset:
    """Return inputs and targets."""
    inputs = torch.linspace(-1.0, 1.0, count * 8).reshape(count, 8)
    return TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))


def evaluate(model: nn.Module, loader: DataLoader) -> float:
    """Sum the loss over the validation data."""
    return sum(nn.functional.mse_loss(model(inputs), targets).item() for inputs, targets in loader)


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, targets: Tensor, is_skipped: bool) -> None:
    """Forward, backward, update."""
    loss = nn.functional.mse_loss(model(inputs), targets)
    if is_skipped:
        return
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main() -> None:
    """Train for four epochs."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    loader, validation = DataLoader(rows(24), batch_size=4), DataLoader(rows(8), batch_size=4)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    for epoch in range(4):
        for inputs, targets in loader:
            step += 1
            train_step(model, optimizer, inputs, targets, is_skipped=WAY == "skips" and rank == 2 and step == 9)
            if WAY == "stops" and rank == 1 and step == 10:
                break
        if WAY != "evaluates" or (rank == 0 and epoch == 1):
            evaluate(model, validation)
        if WAY == "meets" and rank == 0 and epoch == 1:
            dist.barrier()
    say(rank, "training finished")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
