"""Rank 0 runs out of room while it saves: a limit on the size of files stands in for a full disk, and half a checkpoint is left behind.

Command: torchrun --nproc_per_node=2 06_disk_quota_while_saving.py
Root cause to name: disk_full, on rank 0; rank 1 waits at the barrier and fails later.
"""

import resource
from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import TinyModel, say


def main() -> None:
    """Save more than there is room for."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    resource.setrlimit(resource.RLIMIT_FSIZE, (200000, resource.RLIM_INFINITY))  # Python ignores SIGXFSZ: write() answers EFBIG.
    if rank == 0:
        say(rank, "Saving checkpoint at 1 epochs")
        torch.save(TinyModel(width=16384).state_dict(), "epoch_1.pth")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
