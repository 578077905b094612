"""Rank 0 saves in place while rank 1, which waits for the file to appear, loads it: torch.save to a path is not atomic.

The window is real: the file exists from the first byte on and is complete a moment later: this one has 128 megabytes.

Command: torchrun --nproc_per_node=2 06_load_while_written.py
Root cause to name: checkpoint_write_read_race; rank 1 fails, and what is missing is a barrier between the save and the load.
"""

import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from pieces import say

CHECKPOINT = Path("best_stg1.pth")


def main() -> None:
    """Save on one rank and load on the other."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    state = {"layer%d.weight" % index: torch.zeros(1024, 4096) for index in range(8)}
    dist.barrier()
    if rank == 0:
        torch.save(state, str(CHECKPOINT))
        say(rank, "saved %s" % CHECKPOINT)
    else:
        while not (CHECKPOINT.exists() and CHECKPOINT.stat().st_size):
            time.sleep(0.001)
        torch.load(str(CHECKPOINT), map_location="cpu")
        say(rank, "loaded %s" % CHECKPOINT)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
