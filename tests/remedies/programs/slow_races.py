"""Races for checkpoints on a slow disk: `slow_races.py ROUNDS OLDER AHEAD`, two ranks.

In each round rank 0 saves a file and loads it, and rank 1 loads it with no barrier in between.
OLDER is 1 if the file of an earlier round is there. AHEAD is 1 if rank 1 loads as soon as the save has begun, else at
a random moment around its begin. Rank 0 prints what both have read in each round.
"""

import json
import os
import random
import sys
import time

import torch
import torch.distributed as dist

NUMBERS = 1 << 14


def state(number):
    """Return a checkpoint filled with one number."""
    return {"part%d" % part: torch.full((NUMBERS,), float(number)) for part in range(4)}


def read(path):
    """Return the numbers in a checkpoint, or the failure."""
    try:
        loaded = torch.load(path, map_location="cpu")
    except Exception as exc:
        return type(exc).__name__
    return sorted({float(number) for part in loaded.values() for number in (part.min(), part.max())})


def has_begun(path, before):
    """Tell whether a save of the path has begun: it has changed, or the folder of a save is there."""
    now = (os.stat(path).st_size, os.stat(path).st_mtime_ns) if os.path.exists(path) else None
    return now != before or any(name.startswith(".ddp_probe_save") for name in os.listdir("."))


def race(rank, number, path, ahead):
    """Return what this rank reads."""
    before = (os.stat(path).st_size, os.stat(path).st_mtime_ns) if os.path.exists(path) else None
    dist.barrier()
    if rank == 0:
        time.sleep(0.01)
        torch.save(state(number), path)
    elif ahead:
        while not has_begun(path, before):
            time.sleep(0.001)
    else:
        time.sleep(random.Random(number).random() * 0.03)
    return read(path)


def main(rounds, older, ahead):
    """Race so often."""
    dist.init_process_group("gloo")
    rank, told = dist.get_rank(), []
    if older and rank == 0:
        torch.save(state(0), "slow.pth")
    dist.barrier()
    for number in range(1, rounds + 1):
        path = "slow.pth" if older else "slow%d.pth" % number
        answers = [None, None]
        dist.all_gather_object(answers, race(rank, number, path, ahead))
        told.append(answers)
    if rank == 0:
        print("races " + json.dumps(told), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
