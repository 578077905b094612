"""Plain DDP: device_ids=[local_rank] is copied from a tutorial for cards, and the model lives on the CPU because there is no card.

Command: torchrun --nproc_per_node=2 03_ddp_device_ids_on_cpu.py
Root cause to name: device_ids_given_for_cpu_run, on every rank, in the program's own line.
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import TinyModel
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Wrap a model that stays on the CPU."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=10))
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
    model = TinyModel().to(device)
    DistributedDataParallel(model, device_ids=[local_rank], output_device=local_rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
