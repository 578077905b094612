"""Accelerate's loop: prepare, backward, gather; started by accelerate launch, or by its launcher for notebooks."""

import sys

import torch
from accelerate import Accelerator, debug_launcher
from accelerate.utils import DistributedDataParallelKwargs
from pieces import WAY, ToyModel, data, spoil, tolerant
from torch.utils.data import DataLoader


@tolerant
def train() -> None:
    """Train one epoch."""
    accelerator = Accelerator(cpu=True, kwargs_handlers=[DistributedDataParallelKwargs(bucket_cap_mb=1)])
    rank = accelerator.process_index
    model = ToyModel(unused=WAY == "ddp")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(torch.cat([data(0), data(1)]), batch_size=4))
    for step, batch in enumerate(loader):
        loss = model(batch).pow(2).mean()  # way: ddp
        if WAY == "raises" and rank == 1:
            raise ValueError("loss is nan")  # way: raises
        if WAY == "ends" and rank == 1:
            sys.exit(1)  # way: ends
        spoil(rank, step)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    print("rank %d of %d: %.4f" % (rank, accelerator.num_processes, accelerator.gather(loss.detach()).mean()), flush=True)
    del loss
    # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    model, optimizer, loader = accelerator.free_memory(model, optimizer, loader)
    accelerator.end_training()


if __name__ == "__main__":
    if "notebook" in sys.argv:
        debug_launcher(train, num_processes=2)
    else:
        train()
