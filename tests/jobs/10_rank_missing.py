"""A program for torchrun is started with plain python: nobody sets RANK, WORLD_SIZE and the master's address.

Command: python 10_rank_missing.py
Root cause to name: launcher_env_missing; RANK is not set.
"""

from datetime import timedelta

import torch.distributed as dist


def main() -> None:
    """Join the process group, or so it was meant."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
