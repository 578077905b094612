"""Nothing is wrong in this one: two ranks train with DDP over eccl, each on the card of its LOCAL_RANK, and load a checkpoint onto it.

Command: torchrun --nproc_per_node=2 00_healthy_cards.py
Root cause to name: none; a diagnosis that finds something here is mistaken.
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
    """Train, save, load."""
    model = DistributedDataParallel(TinyModel().to(card))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in batches(4, seed=rank):
        train_step(model, optimizer, inputs.to(card), targets.to(card))
    if rank == 0:
        torch.save(model.module.state_dict(), "last.pth")
    dist.barrier()
    model.module.load_state_dict(torch.load("last.pth", map_location="cpu"))


def main() -> None:
    """Join, train, and leave with nothing left on the card."""
    local_rank = int(os.environ["LOCAL_RANK"])
    torch_gcu.set_device(local_rank)
    dist.init_process_group("eccl", timeout=timedelta(seconds=30))
    train(dist.get_rank(), torch.device(torch_gcu.DEVICE_TYPE, local_rank))
    say(dist.get_rank(), "training finished on card %d" % torch_gcu.current_device())
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
