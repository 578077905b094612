"""A counter on the CPU is summed over NCCL, which takes tensors on cards only."""

import torch
import torch.distributed as dist
from stage import BACKEND, LOCAL_RANK, PATIENCE


def main() -> None:
    """Sum it."""
    torch.cuda.set_device(LOCAL_RANK)
    dist.init_process_group(BACKEND, timeout=PATIENCE)
    dist.all_reduce(torch.ones(1))


if __name__ == "__main__":
    main()
