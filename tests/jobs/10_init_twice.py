"""The library joins the process group, and then the program does so itself.

Command: torchrun --nproc_per_node=2 10_init_twice.py
Root cause to name: init_process_group_twice, on every rank.
"""

from datetime import timedelta

import torch.distributed as dist


def setup_by_the_library() -> None:
    """Join the process group unless the program has done so."""
    if not dist.is_initialized():
        dist.init_process_group("gloo", timeout=timedelta(seconds=8))


def main() -> None:
    """Join, and join again."""
    setup_by_the_library()
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
