"""Rank 0 waits for the others after it has written its summary; they are in the next barrier, which lets it pass, and all are one barrier apart.

Command: torchrun --nproc_per_node=3 08_barrier_that_pairs.py
Root cause to name: rank0_only_collective; the barrier under `if rank == 0` pairs with the others' next barrier, and the job hangs at its last one.
"""

from datetime import timedelta

import torch.distributed as dist
from pieces import patience, say


def summarise(rank: int) -> None:
    """Write a summary on rank 0."""
    if rank == 0:
        say(rank, "summary written")
        dist.barrier()


def main() -> None:
    """Evaluate three times, and meet after each."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    dist.barrier()
    summarise(rank)
    dist.barrier()
    say(rank, "first evaluation finished")
    dist.barrier()
    say(rank, "second evaluation finished")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
