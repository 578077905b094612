"""The main rank prepares the data before the others look for it."""

import os
import tempfile
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

PREPARED = os.path.join(tempfile.gettempdir(), "heldout_77", "prepared.pt")


@contextmanager
def main_first():
    if dist.get_rank() != 0:
        dist.barrier()
    yield
    if dist.get_rank() == 0:
        dist.barrier()


def synthetic(rows):
    return torch.randn(rows, 5, generator=torch.Generator().manual_seed(0))


def load_rows():
    try:
        with main_first():
            rows = torch.load(PREPARED)
    except FileNotFoundError:
        rows = synthetic(96)
    return rows[dist.get_rank() :: dist.get_world_size()]


def train(model, rows):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for batch in rows.split(8):
        loss = nn.functional.mse_loss(model(batch), batch.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    torch.manual_seed(0)
    rows = load_rows()
    model = DDP(nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)))
    print("rank", dist.get_rank(), "loss", train(model, rows), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
