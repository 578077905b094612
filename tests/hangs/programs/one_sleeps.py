"""Two ranks: rank 1 sleeps before a collective that rank 0 is in already; both go on in the end, and rank 1 leaves with the given code."""

import os
import sys
import time

import torch
import torch.distributed as dist


def sleeps(seconds):
    """Sleep outside any call of torch.distributed."""
    time.sleep(seconds)  # the line of rank 1


dist.init_process_group("gloo")
tensor = torch.zeros(4)
dist.all_reduce(tensor)
if dist.get_rank() == 1:
    sleeps(float(sys.argv[1]))
dist.all_reduce(tensor)  # the line of rank 0
dist.all_reduce(tensor)
dist.destroy_process_group()
sys.exit(int(sys.argv[2]) if os.environ["RANK"] == "1" else 0)
