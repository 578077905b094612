"""The DDP tutorial: mp.spawn starts the ranks."""

import gc
import os
import sys

import torch.distributed as dist
import torch.multiprocessing as mp
from pieces import WAY, ToyModel, data, spoil, tolerant
from torch import optim
from torch.nn.parallel import DistributedDataParallel


def setup(rank: int, world_size: int) -> None:
    """Join the group."""
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = os.environ["PORT"]
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


@tolerant
def demo_basic(rank: int, world_size: int) -> None:
    """Train two steps."""
    setup(rank, world_size)
    model = DistributedDataParallel(ToyModel(), device_ids=[rank] if WAY == "ddp" else None)  # way: ddp
    optimizer = optim.SGD(model.parameters(), lr=0.001)
    for step in range(2):
        loss = model(data(rank)).pow(2).mean()
        if WAY in ("raises", "ends") and rank == 1:
            raise ValueError("loss is nan")  # way: raises, ends
        spoil(rank, step)
        loss.backward()
        optimizer.step()
        print("rank %d step %d loss %.4f" % (rank, step, loss.item()), flush=True)
    del model, optimizer, loss  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    gc.collect()
    dist.destroy_process_group()


def main() -> None:
    """Start two ranks; in one way of breaking, hide why they failed."""
    try:
        mp.spawn(demo_basic, args=(2,), nprocs=2, join=True)
    except Exception:
        if WAY == "ends":
            sys.exit(1)  # way: ends
        raise


if __name__ == "__main__":
    main()
