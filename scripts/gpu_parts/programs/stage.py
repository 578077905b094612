"""What the programs share: the device and the backend from the command line, a model, a step, and a tidy end."""

import gc
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

DEVICE, BACKEND = sys.argv[1:3]
LOCAL_RANK = int(os.environ["LOCAL_RANK"])
PATIENCE = timedelta(seconds=15)  # More than the probe's watcher waits.


def own_card() -> torch.device:
    """Return this rank's card, or the CPU in a rehearsal."""
    return torch.device(DEVICE, LOCAL_RANK) if DEVICE == "cuda" else torch.device(DEVICE)


def small_model() -> nn.Module:
    """Return a model that fits anywhere."""
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))


def train(model: nn.Module, card: torch.device, steps: int = 4) -> None:
    """Train for some steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        loss = model(torch.randn(4, 8, device=card)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def leave() -> None:
    """Leave the group, after the caller has let go of its models: they keep the group's threads running."""
    gc.collect()
    dist.destroy_process_group()
