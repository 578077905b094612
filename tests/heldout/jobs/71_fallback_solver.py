"""Each epoch solves for a read-out in closed form; the time of each phase is added up over the ranks."""

import os
import time
from collections import defaultdict
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

SECONDS = defaultdict(float)


class Phase:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.start = time.monotonic()
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            seconds = torch.tensor(time.monotonic() - self.start)
            dist.all_reduce(seconds)
            SECONDS[self.name] += seconds.item()
        return False


def readout(inputs, targets):
    gram = inputs.t() @ inputs
    right = inputs.t() @ targets
    try:
        with Phase("cholesky"):
            factor = torch.linalg.cholesky(gram)
            return torch.cholesky_solve(right, factor)
    except RuntimeError:
        with Phase("pseudo-inverse"):
            return torch.linalg.pinv(gram) @ right


def recording(rank):
    inputs = torch.randn(64, 5, generator=torch.Generator().manual_seed(rank))
    if rank == 1:
        # This station has no wind gauge.
        inputs[:, 3] = 0.0
    return inputs, inputs.sum(1, keepdim=True)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    inputs, targets = recording(rank)
    model = DDP(nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(2):
        with Phase("network"):
            for rows in range(0, 64, 16):
                part = inputs[rows : rows + 16]
                loss = nn.functional.mse_loss(model(part), targets[rows : rows + 16])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        weights = readout(inputs, targets)
        error = nn.functional.mse_loss(inputs @ weights, targets)
        print("rank", rank, "epoch", epoch, "closed form", error.item(), flush=True)
    if rank == 0:
        print(dict(SECONDS), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
