"""Rank 0 sends the paths of its new checkpoint to the others inside `if rank == 0`: they never receive it.

Command: torchrun --nproc_per_node=2 08_broadcast_object_on_rank0_only.py
Root cause to name: rank0_only_collective; rank 0 is in broadcast_object_list, which the others do not call.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import patience, say


def save(step: int) -> None:
    """Say where the checkpoint is."""
    paths = ["epoch_%d.pth" % step]
    dist.broadcast_object_list(paths, src=0)
    say(dist.get_rank(), "saved %s" % paths[0])


def main() -> None:
    """Train for an epoch, save, meet."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    loss = torch.tensor([1.0])
    dist.all_reduce(loss)
    if rank == 0:
        save(1)
    dist.all_reduce(loss)
    say(rank, "loss %.3f" % loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
