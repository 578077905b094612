"""Rank 2 keeps 700 MiB on its card that ranks with the same model do not. Nothing fails, as the card has room.

Command: torchrun --nproc_per_node=3 14_memory_of_one_rank.py
Root cause to name: memory_of_one_rank; rank 2 holds far more than the two others.
"""

import gc
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_gcu
from pieces import TinyModel, batches, say, train_step
from torch.nn.parallel import DistributedDataParallel


def train(rank: int, card: torch.device) -> None:
    """Train and save; one rank has the cache of a whole dataset on its card."""
    model = DistributedDataParallel(TinyModel().to(card))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    cache = [torch.empty(700 << 18, device=card)] if rank == 2 else []
    for inputs, targets in batches(4, seed=rank):
        train_step(model, optimizer, inputs.to(card), targets.to(card))
    torch.save(model.module.state_dict(), "rank%d.pth" % rank)
    say(rank, "training finished on card %d, %d kept there" % (torch_gcu.current_device(), len(cache)))


def main() -> None:
    """Join, train, and leave with nothing left on the card."""
    local_rank = int(os.environ["LOCAL_RANK"])
    torch_gcu.set_device(local_rank)
    dist.init_process_group("eccl", timeout=timedelta(seconds=30))
    train(dist.get_rank(), torch.device(torch_gcu.DEVICE_TYPE, local_rank))
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
