"""Starts two ranks in one of the ways that programs do it themselves; each joins a group and does well, or fails in one of some ways."""

import gc
import logging
import os
import signal
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def work(rank, size, port, what):
    """Be one rank."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    model = DistributedDataParallel(torch.nn.Linear(2, 2), device_ids=[rank] if what == "wrap" else None)
    if what == "data" and rank == 1:
        os.stat("/data/train/000042.png")
    if what == "killed" and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    model(torch.zeros(1, 2)).sum().backward()
    del model  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    gc.collect()
    dist.destroy_process_group()
    if what == "at_once":
        os._exit(0)


def plain(how, port, what):
    """Start them as the tutorials do, and print how they ended."""
    context = mp.get_context(how)
    children = [context.Process(target=work, args=(rank, 2, port, what)) for rank in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    print([child.exitcode for child in children])


def caught(port, what):
    """Catch what mp.spawn raises, as a program with its own log does."""
    try:
        mp.spawn(work, args=(2, port, what), nprocs=2)
    except Exception:
        print("caught")
        sys.exit(1)


def logged(port, what):
    """Be one rank that the environment names, and log what fails."""
    try:
        work(int(os.environ["RANK"]), 2, port, what)
    except Exception:
        logging.getLogger(__name__).exception("failed")
        sys.exit(1)


if __name__ == "__main__":
    way, *rest = sys.argv[1:]
    if way == "start_processes":
        mp.start_processes(work, args=(2, *rest[1:]), nprocs=2, start_method=rest[0])
    else:
        {"plain": plain, "caught": caught, "logged": logged}[way](*rest)
