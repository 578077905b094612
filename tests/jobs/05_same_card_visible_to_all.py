"""The launch script shows card 3 to every rank, where it should be the card of LOCAL_RANK: what each calls card 0 is one and the same.

Command: torchrun --nproc_per_node=2 --no_python bash 05_same_card_for_all.sh python 05_same_card_visible_to_all.py
Root cause to name: cuda_visible_devices_wrong, on every rank.
"""

import gc
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_gcu
from pieces import TinyModel, batches, say, train_step
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train on the one card that is visible."""
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
