"""Each rank keeps something of every step on its card, and holds more from epoch to epoch. Nothing fails, as it ends in time.

Command: torchrun --nproc_per_node=2 14_memory_grows.py
Root cause to name: memory_grows, on every rank: 8 MiB a step.
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
    """Train and save ten times, and keep what was meant for one plot."""
    model = DistributedDataParallel(TinyModel().to(card))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for epoch in range(10):
        for inputs, targets in batches(3, seed=rank):
            train_step(model, optimizer, inputs.to(card), targets.to(card))
            kept.append(torch.empty(8 << 18, device=card))
        torch.save({"epoch": epoch}, "rank%d.pth" % rank)


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
