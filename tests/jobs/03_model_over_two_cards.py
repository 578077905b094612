"""Each rank spreads its model over two cards, as model parallelism does, and passes device_ids all the same: DDP refuses.

Command: torchrun --nproc_per_node=2 03_model_over_two_cards.py
Root cause to name: model_parallel_inside_ddp, on every rank.
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_gcu
from pieces import TinyModel
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Spread a model, wrap it as if it were on one card."""
    local_rank = int(os.environ["LOCAL_RANK"])
    torch_gcu.set_device(2 * local_rank)
    dist.init_process_group("eccl", timeout=timedelta(seconds=10))
    model = TinyModel()
    model.backbone.to(torch.device(torch_gcu.DEVICE_TYPE, 2 * local_rank))
    model.head.to(torch.device(torch_gcu.DEVICE_TYPE, 2 * local_rank + 1))
    DistributedDataParallel(model, device_ids=[local_rank])


if __name__ == "__main__":
    main()
