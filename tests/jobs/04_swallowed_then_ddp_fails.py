"""A set-up function swallows every exception: the process group exists, set_device failed, and the program goes on as if it were alone.

What ends the job comes later and elsewhere: is_initialized() says True, so the model is wrapped with device_ids and DDP refuses.

Command: torchrun --nproc_per_node=2 04_swallowed_then_ddp_fails.py
Root cause to name: device_ids_given_for_cpu_run, on every rank; with set_device guarded, and thus nothing to catch, DDP refuses as well.
"""

import os

import torch
import torch.distributed as dist
from pieces import TinyModel
from torch.nn.parallel import DistributedDataParallel


def setup_distributed() -> bool:
    """Join the process group, or say that there is none."""
    try:
        dist.init_process_group("gloo", init_method="env://")
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.barrier()
    except Exception:
        print("Not init distributed mode.")
        return False
    else:
        return True


def main() -> None:
    """Set up, wrap, fail."""
    setup_distributed()
    model = TinyModel()
    if dist.is_available() and dist.is_initialized():
        model = DistributedDataParallel(model, device_ids=[dist.get_rank()])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
