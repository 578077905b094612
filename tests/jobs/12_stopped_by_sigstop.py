"""Rank 1 is stopped by SIGSTOP in the middle of training, as by a debugger or a scheduler, and goes on when it is too late.

Command: torchrun --nproc_per_node=3 12_stopped_by_sigstop.py
Root cause to name: rank_stopped_participating; rank 1 does not run, the others wait in all_reduce.
"""

import os
import signal
import subprocess
from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import patience, say

_LATER = 14  # Seconds after the others have given up.


def main() -> None:
    """Count until rank 1 is stopped."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    for step in range(5):
        if rank == 1 and step == 3:
            subprocess.Popen(["sh", "-c", "sleep %d; kill -CONT %d" % (patience() + _LATER, os.getpid())])
            os.kill(os.getpid(), signal.SIGSTOP)
        dist.all_reduce(torch.ones(4))
        say(rank, "step %d" % step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
