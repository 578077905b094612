"""Each rank compares its own metric: rank 1 skips the barrier under the condition, and both wait for ever. With `raise`, rank 1 raises there."""

import sys
import threading

import torch.distributed as dist


def keep_best(rank: int, best: float) -> None:
    """Wait for all if the value is better."""
    value = 3.5 if rank == 0 else 8.0
    if value < best:
        dist.barrier()
    elif "raise" in sys.argv:
        raise ValueError("worse")
    else:
        threading.Event().wait(12)
        raise SystemExit(3)


dist.init_process_group("gloo")
keep_best(dist.get_rank(), 7.0)
