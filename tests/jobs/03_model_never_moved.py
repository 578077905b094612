"""Each rank sets its card and joins eccl, and model.to() is forgotten: DDP gets device_ids=[local_rank] and parameters on the CPU.

Command: torchrun --nproc_per_node=2 03_model_never_moved.py
Root cause to name: model_on_cpu_at_ddp_wrap, on every rank.
"""

import os
from datetime import timedelta

import torch.distributed as dist
import torch_gcu
from pieces import TinyModel
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Wrap a model that nobody has moved."""
    local_rank = int(os.environ["LOCAL_RANK"])
    torch_gcu.set_device(local_rank)
    dist.init_process_group("eccl", timeout=timedelta(seconds=10))
    DistributedDataParallel(TinyModel(), device_ids=[local_rank])


if __name__ == "__main__":
    main()
