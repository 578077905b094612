"""Rank 1 matches a regular expression that backtracks for years: the C code holds the GIL, so that no other thread of the process runs.

Command: torchrun --nproc_per_node=3 12_holds_the_gil.py
Root cause to name: rank_stopped_participating; rank 1 is at the line of the match, the others wait in all_reduce.
"""

import re
from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import patience, say

_CAPTION = re.compile(r"(\w+\s?)+\.$")


def clean(caption: str) -> bool:
    """Tell whether a caption is made of words."""
    return _CAPTION.match(caption) is not None


def main() -> None:
    """Clean captions and count them over all ranks."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    for step in range(5):
        caption = "a" * 64 + "?" if rank == 1 and step == 3 else "two words."
        counted = torch.tensor([float(clean(caption))])
        dist.all_reduce(counted)
        say(rank, "step %d: %d captions" % (step, counted.item()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
