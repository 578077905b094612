"""Rank 1 runs without mixed precision and reduces float32, the others reduce float16: gloo aborts processes because of the length.

Command: torchrun --nproc_per_node=3 08_other_dtype_on_one_rank.py
Root cause to name: rank_divergent_control_flow; the same all_reduce has another dtype on rank 1.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import say


def main() -> None:
    """Reduce the gradients by hand."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    mixed = rank != 1
    gradients = torch.ones(64, dtype=torch.float16 if mixed else torch.float32)
    dist.all_reduce(gradients)
    say(rank, "gradients sum to %.1f" % gradients.float().sum().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
