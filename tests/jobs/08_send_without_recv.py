"""A pipeline of three stages: the first sends a batch more than the second receives, and everybody else is at the barrier.

Command: torchrun --nproc_per_node=3 08_send_without_recv.py
Root cause to name: rank_divergent_control_flow; rank 0 is in send to rank 1, which has no recv for it.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import patience, say


def main() -> None:
    """Pass batches from stage to stage."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    for _ in range(5 if rank == 0 else 4):
        activations = torch.zeros(64)
        if rank > 0:
            dist.recv(activations, src=rank - 1)
        if rank < last:
            dist.send(activations + 1, dst=rank + 1)
    dist.barrier()
    say(rank, "epoch finished")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
