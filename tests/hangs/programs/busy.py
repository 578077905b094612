"""One rank or several that compute all the time, many frames deep, and meet in all_reduce after each step, until a file named `end` is there."""

import os

import torch
import torch.distributed as dist


def deep(left):
    """Return after this many calls inside each other: their frames come and go in memory."""
    return 0 if not left else 1 + deep(left - 1)


dist.init_process_group("gloo")
print("busy", flush=True)
goes_on = torch.ones(1)
while goes_on.item():
    for _ in range(20):
        deep(900)
    goes_on[0] = not os.path.exists("end")
    dist.all_reduce(goes_on, dist.ReduceOp.MIN)
dist.destroy_process_group()
print("ended")
