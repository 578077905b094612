"""Parameters on the rank's card, device_ids of its neighbour's: the constructor of DDP accepts that in silence, the first step fails.

Command: torchrun --nproc_per_node=2 03_device_ids_of_another_card.py
Root cause to name: device_ids_vs_param_device_mismatch, on every rank.
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_gcu
from pieces import TinyModel, batches, train_step
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Wrap with the wrong number, train a step."""
    local_rank = int(os.environ["LOCAL_RANK"])
    torch_gcu.set_device(local_rank)
    dist.init_process_group("eccl", timeout=timedelta(seconds=10))
    card = torch.device(torch_gcu.DEVICE_TYPE, local_rank)
    model = DistributedDataParallel(TinyModel().to(card), device_ids=[1 - local_rank])
    print("wrapped", flush=True)
    for inputs, targets in batches(1):
        train_step(model, torch.optim.SGD(model.parameters(), lr=0.01), inputs.to(card), targets.to(card))


if __name__ == "__main__":
    main()
