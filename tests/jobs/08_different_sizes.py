"""Each rank reduces a tensor with one element per detection, and no two ranks detect the same number: gloo aborts the process.

Command: torchrun --nproc_per_node=2 08_different_sizes.py
Root cause to name: rank_divergent_control_flow; the same all_reduce has another number of elements on each rank.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import say


def main() -> None:
    """Sum the scores over all ranks."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    detections = 100 + 7 * rank
    scores = torch.rand(detections)
    say(rank, "evaluating %d detections" % detections)
    dist.all_reduce(scores)
    say(rank, "mean score %.3f" % scores.mean().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
