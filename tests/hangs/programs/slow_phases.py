"""Two ranks, healthy and slow: a first step that takes long, rank 0 that evaluates and saves alone, and the other that waits for it."""

import gc
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

EVALUATION, CHECKPOINT, FIRST = map(float, sys.argv[1:4])


class Slow:
    """An object that takes long to save."""

    def __reduce__(self):
        """Sleep, and be empty."""
        time.sleep(CHECKPOINT)
        return (dict, ())


class Compiled(nn.Linear):
    """A layer whose first pass takes long."""

    def forward(self, inputs):
        """Sleep the first time."""
        global FIRST
        FIRST = time.sleep(FIRST) or 0
        return super().forward(inputs)


def evaluate(model):
    """Take long, and call nothing that is watched."""
    end = time.monotonic() + EVALUATION
    while time.monotonic() < end:
        model(torch.ones(2, 8))
        time.sleep(0.01)


dist.init_process_group("gloo")
model = DistributedDataParallel(Compiled(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(2):
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if os.environ["RANK"] == "0":
        evaluate(model.module)
    dist.barrier()
    if os.environ["RANK"] == "0":
        torch.save({"model": model.module.state_dict(), "other": Slow()}, "checkpoint.pth")
    dist.barrier()
del model, optimizer  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
gc.collect()
dist.destroy_process_group()
print("finished")
