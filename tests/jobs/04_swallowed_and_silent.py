"""A set-up function swallows every exception, and its answer decides: nothing is wrapped, each rank trains alone, and the job ends well.

Command: torchrun --nproc_per_node=2 04_swallowed_and_silent.py
Root cause to name: init_failure_swallowed, on every rank; the process group exists and is never used.
"""

import os

import torch
import torch.distributed as dist
from pieces import TinyModel, batches, train_step
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
    """Train as one of two, or so it was meant."""
    distributed = setup_distributed()
    rank = dist.get_rank() if distributed else 0
    model = TinyModel()
    if distributed:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (inputs, targets) in enumerate(batches(4, seed=rank)):
        print("[rank %d] step %d loss %.4f" % (rank, step, train_step(model, optimizer, inputs, targets)), flush=True)
    print("training finished", flush=True)


if __name__ == "__main__":
    main()
