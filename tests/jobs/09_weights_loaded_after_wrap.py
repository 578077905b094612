"""Rank 0 alone loads pretrained weights after DDP has broadcast the first ones: each rank trains another model, and nothing says so.

Command: torchrun --nproc_per_node=2 09_weights_loaded_after_wrap.py
Root cause to name: silent_replica_divergence; rank 0 loads a checkpoint after the wrap, the others do not.
"""

import gc
from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import TinyModel, batches, say, train_step
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Wrap, load on one rank, train."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=8))
    rank = dist.get_rank()
    model = DistributedDataParallel(TinyModel())
    if rank == 0:
        torch.save(TinyModel().state_dict(), "pretrained.pth")
        model.module.load_state_dict(torch.load("pretrained.pth", map_location="cpu"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in batches(3, seed=rank):
        train_step(model, optimizer, inputs, targets)
    say(rank, "sum of head.weight: %.4f" % model.module.head.weight.sum().item())
    del model, optimizer  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    gc.collect()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
