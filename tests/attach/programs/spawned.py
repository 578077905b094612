"""Starts two ranks by mp.spawn; rank 1 waits for something else before the barrier."""

import os
import sys
import time

import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank: int) -> None:
    """Meet once, then part."""
    dist.init_process_group("gloo", rank=rank, world_size=2)
    dist.barrier()
    while rank == 1:
        time.sleep(600)
    dist.barrier()


if __name__ == "__main__":
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1])
    mp.spawn(work, nprocs=2)
