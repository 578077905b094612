"""The ImageNet example over several hosts: each host's program starts its ranks with mp.spawn, and all meet at --dist-url."""

import argparse
import gc
import os
import signal

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from pieces import WAY, ToyModel, data


def main_worker(local_rank: int, args: argparse.Namespace) -> None:
    """Train two steps."""
    rank = args.rank + local_rank  # One process a host.
    dist.init_process_group("gloo", init_method=args.dist_url, world_size=args.world_size, rank=rank)
    model = torch.nn.parallel.DistributedDataParallel(ToyModel(), device_ids=[0] if WAY == "ddp" else None)  # way: ddp
    for step in range(2):
        loss = model(data(rank)).pow(2).mean()
        if WAY == "raises" and rank == 1:
            raise ValueError("loss is nan")  # way: raises
        if WAY == "ends" and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
        print("rank %d step %d loss %.4f" % (rank, step, loss.item()), flush=True)
    del model, loss  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    gc.collect()
    dist.destroy_process_group()


def main() -> None:
    """Read the command line, and start this host's ranks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--multiprocessing-distributed", action="store_true")
    parser.add_argument("--world-size", type=int)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--dist-url")
    args = parser.parse_args()
    mp.spawn(main_worker, nprocs=1, args=(args,))


if __name__ == "__main__":
    main()
