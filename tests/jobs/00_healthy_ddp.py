"""Nothing is wrong in this one: two ranks train with DDP on CPU, rank 0 saves a checkpoint, both load it after a barrier.

Command: torchrun --nproc_per_node=2 00_healthy_ddp.py
Root cause to name: none; a diagnosis that finds something here is mistaken.
"""

import gc
from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import TinyModel, batches, say, train_step
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Train, save, load, end."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank = dist.get_rank()
    model = DistributedDataParallel(TinyModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (inputs, targets) in enumerate(batches(4, seed=rank)):
        say(rank, "step %d loss %.4f" % (step, train_step(model, optimizer, inputs, targets)))
    if rank == 0:
        torch.save(model.module.state_dict(), "last.pth")
    dist.barrier()
    model.module.load_state_dict(torch.load("last.pth", map_location="cpu"))
    say(rank, "training finished")
    del model, optimizer  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
