"""Rank 1 skips the backward pass of a step whose loss is not finite, under FSDP: the others scatter gradients while it gathers parameters.

Command: torchrun --nproc_per_node=3 08_fsdp_step_skipped_on_one_rank.py VERSION
Root cause to name: rank_divergent_control_flow; rank 1 is in the forward pass of the next step, the others in backward.
"""

import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from pieces import TinyModel, batches, patience, say
from torch import nn


def sharded(model: nn.Module) -> nn.Module:
    """Shard a model over the ranks, in one of the two ways."""
    if sys.argv[1] == "1":
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel(model, device_id=torch.device("cpu"))
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    return fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))


def main() -> None:
    """Train and leave out bad batches."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=patience()))
    rank = dist.get_rank()
    model = sharded(TinyModel())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (inputs, targets) in enumerate(batches(5, seed=rank)):
        if rank == 1 and step == 2:
            inputs.div_(0.0)
        loss = nn.functional.mse_loss(model(inputs), targets)
        if not torch.isfinite(loss):
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        say(rank, "step %d" % step)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
