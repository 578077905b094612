"""Only rank 0 logs, and the function that logs averages the loss over all ranks: a collective inside `if rank == 0`.

Command: torchrun --nproc_per_node=2 08_collective_on_rank0_only.py
Root cause to name: rank0_only_collective; rank 0 waits in all_reduce, the others never call it.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import patience, say


def log_loss(step: int, loss: float) -> None:
    """Print the mean loss of all ranks."""
    mean = torch.tensor([loss])
    dist.all_reduce(mean)
    say(dist.get_rank(), "step %d loss %.4f" % (step, mean.item() / dist.get_world_size()))


def main() -> None:
    """Log from one rank, then meet at the end of the epoch."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    if rank == 0:
        log_loss(1, 0.25)
    dist.barrier()
    say(rank, "epoch finished")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
