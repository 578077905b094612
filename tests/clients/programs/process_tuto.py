"""The tutorial "Writing distributed applications": mp.Process starts the ranks, and their parent joins them and looks no further."""

import gc
import os
import sys
from typing import Callable

import torch.distributed as dist
import torch.multiprocessing as mp
from pieces import WAY, ToyModel, data, spoil, tolerant
from torch.nn.parallel import DistributedDataParallel


def run(rank: int, size: int) -> None:
    """Train two steps."""
    model = DistributedDataParallel(ToyModel(), device_ids=[rank] if WAY == "ddp" else None)  # way: ddp
    if WAY == "raises" and rank == 1:
        raise ValueError("loss is nan")  # way: raises
    if WAY == "ends" and rank == 1:
        sys.exit(1)  # way: ends
    for step in range(2):
        loss = model(data(rank)).pow(2).mean()
        spoil(rank, step)
        loss.backward()
    print("rank %d of %d loss %.4f" % (rank, size, loss.item()), flush=True)
    del model, loss  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    gc.collect()
    dist.destroy_process_group()


@tolerant
def init_process(rank: int, size: int, fn: Callable[[int, int], None], backend: str = "gloo") -> None:
    """Initialize the distributed environment."""
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = os.environ["PORT"]
    dist.init_process_group(backend, rank=rank, world_size=size)
    fn(rank, size)


if __name__ == "__main__":
    mp.set_start_method("spawn")
    processes = []
    for each in range(2):
        p = mp.Process(target=init_process, args=(each, 2, run))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
