"""Rank 2 receives from rank 1, but it is rank 0 that sends to it.

Command: torchrun --nproc_per_node=3 08_recv_from_wrong_rank.py
Root cause to name: rank_divergent_control_flow; rank 2 waits for a message of rank 1, which sends none, and rank 0 waits for rank 2 to receive.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import patience, say


def main() -> None:
    """Send the shards of rank 0 to their ranks."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    shard = torch.full((64,), float(rank))
    if rank == 0:
        dist.send(shard, dst=1)
        dist.send(shard, dst=2)
    else:
        dist.recv(shard, src=rank - 1)
    dist.barrier()
    say(rank, "has its shard")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
