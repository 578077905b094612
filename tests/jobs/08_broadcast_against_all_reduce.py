"""Three ranks take over the weights of rank 0 after its checkpoint; rank 2 has resumed from another epoch and averages them instead.

Command: torchrun --nproc_per_node=4 08_broadcast_against_all_reduce.py
Root cause to name: rank_divergent_control_flow; at one number of the group three ranks broadcast and rank 2 reduces.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import patience, say


def main() -> None:
    """Bring the weights of all ranks together."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    epoch = [3, 3, 4, 3][rank]
    weights = torch.full((5000,), float(rank))
    dist.all_reduce(weights)
    if epoch == 3:
        dist.broadcast(weights, src=0)
    else:
        dist.all_reduce(weights)
    say(rank, "weights sum to %.1f" % weights.sum().item())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
