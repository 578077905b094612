"""Goes on from the newest checkpoint that can be read."""

import os
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

EPOCHS = 5


def earlier_run(folder, rank):
    """Leave what a run that was killed had written on this host."""
    for epoch in range(3):
        path = os.path.join(folder, "epoch%d.pt" % epoch)
        torch.save({"epoch": epoch, "model": nn.Linear(4, 4).state_dict()}, path)
    if rank == 1:
        with open(path, "r+b") as file:
            file.truncate(100)


def newest(folder):
    for name in sorted(os.listdir(folder), reverse=True):
        try:
            return torch.load(os.path.join(folder, name))
        except Exception as exc:
            print("cannot read", name, type(exc).__name__, flush=True)
    return None


def run_epoch(model, optimizer):
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(3, 4)).square().mean().backward()
        optimizer.step()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=int(os.environ.get("PATIENCE", "8"))))
    rank = dist.get_rank()
    torch.manual_seed(0)
    module = nn.Linear(4, 4)
    start = 0
    with tempfile.TemporaryDirectory() as folder:
        earlier_run(folder, rank)
        state = newest(folder)
    if state is not None:
        module.load_state_dict(state["model"])
        start = state["epoch"] + 1
    model = DDP(module)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(start, EPOCHS):
        run_epoch(model, optimizer)
        print("rank", rank, "epoch", epoch, flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
