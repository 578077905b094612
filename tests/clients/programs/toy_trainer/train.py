"""Accelerate's loop, in a package: started by accelerate launch -m toy_trainer.train, or by python -m toy_trainer.train notebook."""

import sys
from datetime import timedelta

import torch
from accelerate import Accelerator, debug_launcher
from accelerate.utils import DistributedDataParallelKwargs, InitProcessGroupKwargs
from torch.utils.data import DataLoader

from toy_trainer.pieces import WAY, ToyModel, data, spoil, tolerant

# A job that hangs ends by itself; the others may take long to import what they need.
PATIENCE = timedelta(seconds=70 if WAY in ("hang", "guarded") else 600)


def evaluate(accelerator: Accelerator, loss: torch.Tensor) -> float:
    """Return the mean of all losses; in one way rank 0 alone asks for it."""
    return float(accelerator.gather(loss.detach()).mean())  # way: guarded


@tolerant
def train() -> None:
    """Train one epoch."""
    accelerator = Accelerator(cpu=True, kwargs_handlers=[DistributedDataParallelKwargs(bucket_cap_mb=1), InitProcessGroupKwargs(timeout=PATIENCE)])
    rank = accelerator.process_index
    model = ToyModel(unused=WAY == "ddp")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(torch.cat([data(0), data(1)]), batch_size=4))
    for step, batch in enumerate(loader):
        loss = model(batch).pow(2).mean()  # way: ddp
        spoil(rank, step)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if WAY != "guarded" or accelerator.is_main_process:  # way: guarded
            print("rank %d step %d: %.4f" % (rank, step, evaluate(accelerator, loss)), flush=True)  # way: guarded
    accelerator.save_model(model, "saved")
    accelerator.wait_for_everyone()
    del loss
    # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    model, optimizer, loader = accelerator.free_memory(model, optimizer, loader)
    accelerator.end_training()


if __name__ == "__main__":
    if "notebook" in sys.argv:
        debug_launcher(train, num_processes=2)
    else:
        train()
