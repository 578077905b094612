"""The shape of the ImageNet example: the environment numbers the ranks (by hand, MPI, SLURM), and somebody wrapped main() in a try."""

import argparse
import gc
import logging
import os
import sys

import torch
import torch.distributed as dist
from pieces import WAY, ToyModel, data, spoil, tolerant


def _number(*names: str) -> int:
    return next(int(os.environ[name]) for name in names if name in os.environ)


@tolerant
def main_worker(args: argparse.Namespace) -> None:
    """Train two steps, then average the accuracy over the ranks."""
    rank = _number("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
    size = _number("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
    dist.init_process_group(backend=args.dist_backend, init_method=args.dist_url, world_size=size, rank=rank)
    model = torch.nn.parallel.DistributedDataParallel(ToyModel(), device_ids=[rank] if WAY == "ddp" else None)  # way: ddp
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(2):
        loss = model(data(rank)).pow(2).mean()
        if WAY in ("raises", "ends") and rank == 1:
            raise ValueError("loss is nan")  # way: raises, ends
        spoil(rank, step)
        loss.backward()
        optimizer.step()
        print("rank %d step %d loss %.4f" % (rank, step, loss.item()), flush=True)
    total = torch.tensor([1.0])
    dist.all_reduce(total)
    del model, optimizer, loss  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    gc.collect()
    dist.destroy_process_group()


def main() -> None:
    """Read the command line; in one way of breaking, log whatever happens and end with 1."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--dist-url", default="env://")
    parser.add_argument("--dist-backend", default="gloo")
    args = parser.parse_args()
    if WAY != "ends":
        main_worker(args)
        return
    try:
        main_worker(args)
    except Exception:
        logging.getLogger(__name__).exception("training failed")
        sys.exit(1)  # way: ends


if __name__ == "__main__":
    main()
