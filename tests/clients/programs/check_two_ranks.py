"""A pytest test that runs a job of two ranks in processes of its own, as torch's own tests do."""

import gc
import os
import sys

import pytest
import torch.distributed as dist
import torch.multiprocessing as mp
from pieces import WAY, ToyModel, data
from torch.nn.parallel import DistributedDataParallel


def train(rank: int) -> None:
    """Train one step."""
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:%s" % os.environ["PORT"], rank=rank, world_size=2)
    model = DistributedDataParallel(ToyModel(), device_ids=[rank] if WAY == "ddp" else None)  # way: ddp
    loss = model(data(rank)).pow(2).mean()
    if WAY == "raises" and rank == 1:
        raise ValueError("loss is nan")  # way: raises
    if WAY == "ends" and rank == 1:
        sys.exit(1)  # way: ends
    loss.backward()
    del model, loss  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    gc.collect()
    dist.destroy_process_group()


def test_training() -> None:
    """Two ranks train."""
    mp.spawn(train, nprocs=2)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
