"""Ranks that stand before they make a process group, or in a collective that Python does not see: before_group.py WHERE FILE, until FILE is there."""

import os
import sys
import time

import torch
import torch.distributed as dist


def wait_for_lock() -> None:
    """Wait as for a lock of another build."""
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.1)  # line: lock


def read_config() -> None:
    """Wait for another thing than the other ranks."""
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.1)  # line: config


def reduce_unseen() -> None:
    """Reduce as DTensor does."""
    from torch.distributed import _functional_collectives as functional

    (functional.all_reduce(torch.ones(4), "sum", dist.group.WORLD) + 1).sum().item()  # line: reduce


is_last = os.environ["RANK"] == "2"
if sys.argv[1] == "before":
    read_config() if is_last else wait_for_lock()
dist.init_process_group("gloo")
if sys.argv[1] == "unseen":
    if is_last:
        read_config()
    reduce_unseen()
dist.barrier()
dist.destroy_process_group()
