"""Rank 2 found nothing to evaluate and goes to the barrier, while the others still sum their scores.

Command: torchrun --nproc_per_node=3 08_barrier_against_all_reduce.py
Root cause to name: rank_divergent_control_flow; at one number of the group two ranks reduce and rank 2 is at a barrier.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import patience, say


def main() -> None:
    """Evaluate what this rank was given, and meet."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    images = [4, 3, 0][rank]
    total = torch.tensor([float(images)])
    dist.all_reduce(total)
    if images:
        score = torch.tensor([0.5 * images])
        dist.all_reduce(score)
        say(rank, "mean score %.3f" % (score / total).item())
    dist.barrier()
    say(rank, "evaluation finished")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
