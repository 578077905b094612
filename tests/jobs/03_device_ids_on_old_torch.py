"""DDP of torch 1.12 takes device_ids=[local_rank] for any card in its constructor, and its first forward asks CUDA for a stream.

Command: torchrun --nproc_per_node=2 03_device_ids_on_old_torch.py
Root cause to name: framework_version_incompat, on every rank; device_ids=None is right there.
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_gcu
from pieces import TinyModel, batches, train_step
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Wrap as a newer torch allows, train a step."""
    local_rank = int(os.environ["LOCAL_RANK"])
    torch_gcu.set_device(local_rank)
    dist.init_process_group("eccl", timeout=timedelta(seconds=10))
    card = torch.device(torch_gcu.DEVICE_TYPE, local_rank)
    model = DistributedDataParallel(TinyModel().to(card), device_ids=[local_rank])
    print("wrapped", flush=True)
    for inputs, targets in batches(1):
        train_step(model, torch.optim.SGD(model.parameters(), lr=0.01), inputs.to(card), targets.to(card))


if __name__ == "__main__":
    main()
