"""The model is moved, and then a conversion puts new layers in: those are on the CPU, and DDP refuses the mixture.

Command: torchrun --nproc_per_node=2 03_converted_after_the_move.py
Root cause to name: mixed_cpu_cuda_params, on every rank: the layer that came after Module.to.
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_gcu
from pieces import TinyModel
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def convert(model: nn.Module) -> nn.Module:
    """Normalise before the head."""
    model.head = nn.Sequential(nn.LayerNorm(16), model.head)
    return model


def main() -> None:
    """Move, convert, wrap."""
    local_rank = int(os.environ["LOCAL_RANK"])
    torch_gcu.set_device(local_rank)
    dist.init_process_group("eccl", timeout=timedelta(seconds=10))
    model = convert(TinyModel().to(torch.device(torch_gcu.DEVICE_TYPE, local_rank)))
    DistributedDataParallel(model, device_ids=[local_rank])


if __name__ == "__main__":
    main()
