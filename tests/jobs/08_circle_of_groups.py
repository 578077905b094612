"""Each rank is in two groups of two and takes its own group first: 0 waits for 1, 1 waits for 2, 2 waits for 0.

Command: torchrun --nproc_per_node=3 08_circle_of_groups.py
Root cause to name: rank_divergent_control_flow; the groups 0-1, 1-2 and 0,2 wait for each other in a circle.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import patience, say


def main() -> None:
    """Average with the right neighbour, then with the left one."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank, world_size = dist.get_rank(), dist.get_world_size()
    groups = [dist.new_group(sorted((left, (left + 1) % world_size)), timeout=timedelta(seconds=patience())) for left in range(world_size)]
    edge = torch.full((8,), float(rank))
    dist.all_reduce(edge)
    dist.all_reduce(edge, group=groups[rank])
    dist.all_reduce(edge, group=groups[rank - 1])
    say(rank, "edges averaged")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
