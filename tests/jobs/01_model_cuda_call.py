"""A program written for NVIDIA cards on a host without one: the process group is on gloo, the model is sent to .cuda().

Command: torchrun --nproc_per_node=2 01_model_cuda_call.py
Root cause to name: cuda_call_on_non_cuda_host, on every rank, in the program's own line.
"""

import os
from datetime import timedelta

import torch.distributed as dist
from pieces import TinyModel
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Send the model to a card that is not there."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=10))
    local_rank = int(os.environ["LOCAL_RANK"])
    model = TinyModel().cuda(local_rank)
    DistributedDataParallel(model, device_ids=[local_rank])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
