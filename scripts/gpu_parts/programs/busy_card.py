"""Rank 1 waits for a kernel that does not end soon, and rank 0 waits for rank 1 in a collective of gloo: one card serves both."""

import time

import torch
import torch.distributed as dist
from stage import DEVICE, PATIENCE

_CYCLES = 200 * 10**9  # More than a minute at any clock rate.


def compute() -> None:
    """Give the card a long kernel and wait for it; in a rehearsal, sleep."""
    if DEVICE == "cuda":
        torch.cuda._sleep(_CYCLES)
        torch.cuda.synchronize()
    else:
        time.sleep(90)


def main() -> None:
    """Meet once, then part."""
    dist.init_process_group("gloo", timeout=PATIENCE)
    dist.all_reduce(torch.ones(1))
    if dist.get_rank() == 1:
        compute()
    dist.all_reduce(torch.ones(1))


if __name__ == "__main__":
    main()
