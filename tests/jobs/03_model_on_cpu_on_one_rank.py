"""A condition on the rank moves the model of rank 0 alone: rank 1 wraps one that is on the CPU, and rank 0 waits for it.

Command: torchrun --nproc_per_node=2 03_model_on_cpu_on_one_rank.py
Root cause to name: model_on_cpu_at_ddp_wrap, on rank 1.
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_gcu
from pieces import TinyModel
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Move where rank 0 says so, wrap everywhere."""
    local_rank = int(os.environ["LOCAL_RANK"])
    torch_gcu.set_device(local_rank)
    dist.init_process_group("eccl", timeout=timedelta(seconds=10))
    model = TinyModel()
    if dist.get_rank() == 0:
        model.to(torch.device(torch_gcu.DEVICE_TYPE, local_rank))
    DistributedDataParallel(model, device_ids=[local_rank])


if __name__ == "__main__":
    main()
