"""The card's number is written into the program: every rank trains on card 0, and seven of eight idle. Nothing fails.

Command: torchrun --nproc_per_node=2 05_hardcoded_card_zero.py
Root cause to name: hardcoded_device_zero, on every rank.
"""

import gc
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_gcu
from pieces import TinyModel, batches, say, train_step
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train on card 0, whoever this is."""
    torch_gcu.set_device(0)
    dist.init_process_group("eccl", timeout=timedelta(seconds=10))
    card = torch.device(torch_gcu.DEVICE_TYPE, 0)
    model = DistributedDataParallel(TinyModel().to(card))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in batches(4, seed=dist.get_rank()):
        train_step(model, optimizer, inputs.to(card), targets.to(card))
    say(dist.get_rank(), "training finished on %s" % next(model.parameters()).device)
    del model, optimizer
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
