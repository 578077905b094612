"""One card is visible and two ranks are started: rank 1 asks for a card that is not there.

Command: TOPS_VISIBLE_DEVICES=0 torchrun --nproc_per_node=2 05_more_processes_than_cards.py
Root cause to name: nproc_gt_visible_gpus, on rank 1.
"""

import gc
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_gcu
from pieces import TinyModel, batches, say, train_step
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Set the card of this rank, and train."""
    local_rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("eccl", timeout=timedelta(seconds=10))
    torch_gcu.set_device(local_rank)
    card = torch.device(torch_gcu.DEVICE_TYPE, local_rank)
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
