"""Every rank reduces its loss with async_op=True and drops the handle: what it prints may be summed or not.

Command: torchrun --nproc_per_node=2 08_work_never_waited_for.py
Root cause to name: work_never_waited_for; the work of all_reduce is thrown away on each rank before anybody has waited for it.
"""

from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import say


def main() -> None:
    """Log the loss of all ranks without waiting for it."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for step in range(3):
        loss = torch.tensor([1.0 / (step + 1)])
        dist.all_reduce(loss, async_op=True)
        say(rank, "step %d loss %.4f" % (step, loss.item() / world_size))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
