"""Each rank takes the best score that it has seen for the best of all, and broadcasts from there: rank 2 names another root than the others.

Command: torchrun --nproc_per_node=3 08_other_root.py
Root cause to name: rank_divergent_control_flow; the same broadcast has root 0 on two ranks and root 2 on rank 2.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import patience, say


def main() -> None:
    """Take over the weights of the best rank."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    seen = [[0.9, 0.5, 0.6], [0.9, 0.5, 0.6], [0.5, 0.5, 0.6]][rank]
    weights = torch.full((16,), float(rank))
    dist.all_reduce(weights)
    best = seen.index(max(seen))
    dist.broadcast(weights, src=best)
    say(rank, "goes on with the weights of rank %d" % best)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
