"""Trains a network with batch norm on four ranks, of which one makes the mistake that the first argument names; the second says how it is wrapped."""

import copy
import math
import os
import sys
from datetime import timedelta
from typing import Callable, Dict

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 3


class Net(nn.Module):
    """Two blocks with batch norm; the second may be computed again in backward."""

    def __init__(self, is_checkpointed: bool) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.body = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
        self.is_checkpointed = is_checkpointed

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return one number for each row."""
        features = self.stem(inputs)
        if self.is_checkpointed:
            return checkpoint(self.body, features, use_reentrant=True)
        return self.body(features)


class Run:
    """A model with its optimizer, its data and the copy that is evaluated."""

    def __init__(self, wrap: str) -> None:
        self.rank = dist.get_rank()
        self.step = 0
        options = {wrap: wrap != "broadcast_buffers"} if wrap in ("broadcast_buffers", "static_graph", "find_unused_parameters") else {}
        self.model = DistributedDataParallel(Net(wrap == "checkpoint"), **options)
        self.evaluated = copy.deepcopy(self.model) if wrap == "copy" else self.model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        inputs = torch.linspace(-1.0, 1.0, 24 * 8).reshape(24, 8)
        data = TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))
        self.loader, self.validation = DataLoader(data, batch_size=4), DataLoader(data, batch_size=8)

    def update(self, loss: torch.Tensor) -> None:
        """Backward and step."""
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def train(self) -> None:
        """Train for one epoch."""
        for inputs, targets in self.loader:
            self.update(nn.functional.mse_loss(self.model(inputs), targets))

    def evaluate(self) -> float:
        """Return the loss over the validation data."""
        return sum(nn.functional.mse_loss(self.evaluated(inputs), targets).item() for inputs, targets in self.validation)


def evaluates(run: Run) -> None:
    """Rank 0 alone evaluates through DDP."""
    for _ in range(EPOCHS):
        run.train()
        if run.rank == 0:
            run.evaluate()


def skips(run: Run) -> None:
    """Rank 2 skips a backward pass."""
    for step in range(EPOCHS):
        for inputs, targets in run.loader:
            loss = nn.functional.mse_loss(run.model(inputs), targets)
            scale = float("nan") if run.rank == 2 and step == 1 else 1.0
            if not math.isfinite(scale):
                continue
            run.update(loss * scale)


def meets(run: Run) -> None:
    """Rank 0 alone comes to a barrier."""
    for _ in range(EPOCHS):
        run.train()
        run.evaluate()
        if run.rank == 0:
            torch.save(run.model.state_dict(), os.devnull)
            dist.barrier()


def stops(run: Run) -> None:
    """Rank 1 stops early."""
    for epoch in range(EPOCHS):
        run.train()
        loss = run.evaluate()
        patience = 0 if run.rank == 1 else EPOCHS
        if epoch > patience:
            break
        print("loss", loss)


WAYS: Dict[str, Callable[[Run], None]] = {"evaluates": evaluates, "skips": skips, "meets": meets, "stops": stops}


def main() -> None:
    """Train, and meet once more at the end."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ["JOB_PATIENCE"])))
    WAYS[sys.argv[1]](Run(sys.argv[2]))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
