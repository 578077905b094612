"""Two ranks: rank 1 sleeps before a collective that rank 0 is in already; both go on in the end, and rank 1 leaves with the given code."""

import glob
import os
import sys
import time

import torch
import torch.distributed as dist


def sleeps(seconds):
    """Sleep outside any call of torch.distributed."""
    time.sleep(seconds)  # the line of rank 1


def is_over():
    """Tell whether the log of rank 0 says that the hang is over."""
    return any('"hang.over"' in open(path).read() for path in glob.glob(os.environ["DDP_PROBE_DIR"] + "/*/rank00000.*.jsonl"))


dist.init_process_group("gloo")
tensor = torch.zeros(4)
dist.all_reduce(tensor)
if dist.get_rank() == 1:
    sleeps(float(sys.argv[1]))
dist.all_reduce(tensor)  # the line of rank 0
dist.all_reduce(tensor)
dist.destroy_process_group()
if os.environ["RANK"] == "0":
    sys.exit(0)
while sys.argv[2] != "0" and not is_over():  # The launcher ends rank 0 as soon as this one has failed.
    time.sleep(0.05)
sys.exit(int(sys.argv[2]))
