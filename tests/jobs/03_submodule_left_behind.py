"""The backbone is moved to the card and the head is not: the parameters are on two types of device, which DDP refuses.

Command: torchrun --nproc_per_node=2 03_submodule_left_behind.py
Root cause to name: mixed_cpu_cuda_params, on every rank: head.weight and head.bias.
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_gcu
from pieces import TinyModel
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Move one half of a model and wrap the whole."""
    local_rank = int(os.environ["LOCAL_RANK"])
    torch_gcu.set_device(local_rank)
    dist.init_process_group("eccl", timeout=timedelta(seconds=10))
    model = TinyModel()
    model.backbone.to(torch.device(torch_gcu.DEVICE_TYPE, local_rank))
    DistributedDataParallel(model)


if __name__ == "__main__":
    main()
