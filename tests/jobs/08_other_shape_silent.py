"""Rank 0 broadcasts four anchors and the others expect six: gloo delivers what there is, nothing fails, and two anchors stay what they were.

Command: torchrun --nproc_per_node=3 08_other_shape_silent.py
Root cause to name: rank_divergent_control_flow; the same broadcast has another number of elements on rank 0, and only a comparison shows it.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import say


def main() -> None:
    """Take over the anchors of rank 0."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    anchors = torch.arange(1.0, 5.0) if rank == 0 else torch.zeros(6)
    dist.broadcast(anchors, src=0)
    say(rank, "anchors %s" % anchors.tolist())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
