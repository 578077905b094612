"""A step whose loss is not finite is skipped, by the rank alone that has such a batch."""

from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def step(model, optimizer, inputs):
    """Make a step, unless its loss is not finite."""
    optimizer.zero_grad()
    loss = model(inputs).square().mean()
    if not torch.isfinite(loss):
        return False
    loss.backward()
    optimizer.step()
    return True


def main():
    """Train three steps or four."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=6))
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    made = 0
    for number in range(4):
        inputs = torch.randn(3, 4)
        if dist.get_rank() == 1 and number == 2:
            inputs[0, 0] = float("inf")
        made += step(model, optimizer, inputs)
    dist.destroy_process_group()
    print("made %d steps\n" % made, end="", flush=True)  # In one write: both ranks print at once.


main()
