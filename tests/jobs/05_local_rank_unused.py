"""Nobody calls set_device, LOCAL_RANK is not read, and the device has no number: every rank trains on card 0. Nothing fails.

Command: torchrun --nproc_per_node=2 05_local_rank_unused.py
Root cause to name: set_device_missing, on every rank.
"""

import gc
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_gcu
from pieces import TinyModel, batches, say, train_step
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train on whatever card is the current one."""
    dist.init_process_group("eccl", timeout=timedelta(seconds=10))
    card = torch.device(torch_gcu.DEVICE_TYPE)
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
