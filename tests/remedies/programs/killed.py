"""Kills a process that saves in a loop, at random moments: `killed.py KILLS`. Prints what was found of the checkpoint after each kill.

Each writer is a fork of this process, which has everything imported; it becomes a rank of its own, as the children of mp.spawn do.
Every checkpoint consists of tensors filled with one number, the writers' numbers rise, and the last word on what a file holds is a load
without any remedy.
"""

import glob
import json
import os
import random
import signal
import sys
import time

import torch
import torch.distributed as dist
from mmengine.runner import save_checkpoint

PATH = "last.pth"
PARTS = 4
NUMBERS = 1 << 15


def write(number, through_mmengine):
    """Save one checkpoint."""
    state = {"part%d" % part: torch.full((NUMBERS,), float(number)) for part in range(PARTS)}
    if through_mmengine:
        save_checkpoint(state, PATH)
    else:
        torch.save(state, PATH)


def writer(number, ready, through_mmengine):
    """Become a rank, save from this number on, and say when the first save is done."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    write(number, through_mmengine)
    os.write(ready, b"x")
    while True:
        number += 1
        write(number, through_mmengine)


def started(number, through_mmengine):
    """Start a writer and wait for its first save."""
    read, ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            writer(number, ready, through_mmengine)
        finally:
            os._exit(1)
    os.close(ready)
    assert os.read(read, 1) == b"x"
    os.close(read)
    return pid


def found():
    """Return the number that the checkpoint holds; None if it does not load or holds several."""
    try:
        state = torch.load(PATH, map_location="cpu")
    except Exception:
        return None
    numbers = {float(number) for part in state.values() for number in (part.min(), part.max())}
    return int(numbers.pop()) if len(numbers) == 1 and len(state) == PARTS else None


def litter(by=""):
    """Count what lies beside the checkpoint, of one process or of all."""
    return len(glob.glob(".ddp_probe_save*-%s*" % by))


def killed(pid):
    """Kill a writer, and leave it uncollected: in a container often nobody collects an orphan."""
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def main(kills):
    """Kill so many writers, every third of which saves through mmengine."""
    told = {"kills": kills, "broken": 0, "back": 0, "in a save": 0, "not swept": 0}
    number, last = 0, 0
    began = time.monotonic()
    for kill in range(kills):
        pid = started(number + 1, kill % 3 == 2)
        if last:
            told["not swept"] += litter("%d-" % last)
            os.waitpid(last, 0)
        time.sleep(random.random() * 0.015)
        killed(pid)
        told["in a save"] += bool(litter("%d-" % pid))
        now = found()
        told["broken"] += now is None
        told["back"] += now is not None and now <= number
        number, last = now or number + 1000, pid
    write(0, False)
    told["left"] = litter()
    told["seconds"] = round(time.monotonic() - began, 1)
    return told


if __name__ == "__main__":
    random.seed(7)
    print(json.dumps(main(int(sys.argv[1]))))
