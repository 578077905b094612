"""Rank 0 broadcasts the metric while the others reduce it: two collectives that never meet.

Command: torchrun --nproc_per_node=2 08_all_reduce_against_broadcast.py
Root cause to name: rank_divergent_control_flow; the same position in the sequence holds another collective on each rank.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import patience, say


def main() -> None:
    """Share a number, each rank in its own way."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    metric = torch.tensor([0.5 + rank])
    dist.all_reduce(metric)
    say(rank, "metric of epoch 1: %.3f" % metric.item())
    if rank == 0:
        dist.broadcast(metric, src=0)
    else:
        dist.all_reduce(metric)
    say(rank, "metric of epoch 2: %.3f" % metric.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
