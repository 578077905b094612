"""Two ranks that are slow in one way and otherwise healthy, until the seconds are over: slow_and_healthy.py WAY SECONDS LONG."""

import gc
import os
import pdb  # noqa: T100 - one way is to sit in it
import random
import sys
import time

WAY, SECONDS, LONG = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
RANK = int(os.environ["RANK"])

if WAY == "late" and RANK == 1:
    time.sleep(LONG)  # What is imported before torch.

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402


class Opened:
    """An object that takes long to load."""

    def __setstate__(self, state):
        """Sleep."""
        time.sleep(LONG)

    def __getstate__(self):
        """Keep something."""
        return {"a": 1}


class Computed(torch.utils.data.Dataset):
    """Takes a worker long for each row."""

    def __len__(self):
        """Return one."""
        return 1

    def __getitem__(self, index):
        """Compute."""
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            random.random()
        return index


def evaluate(model):
    """Take long, and call nothing that is watched."""
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        model(torch.ones(2, 8))
        time.sleep(0.01)


def look_into():
    """Sit in the debugger until somebody has typed c."""
    read, write = os.pipe()
    if os.fork() == 0:
        time.sleep(LONG)
        os.write(write, b"c\n")
        os._exit(0)
    with open(os.devnull, "w") as nowhere, os.fdopen(read) as typed:
        debugger = pdb.Pdb(stdin=typed, stdout=nowhere)
        debugger.set_trace()
        time.sleep(0.01)


def between(step, model):
    """Do what is slow on one rank while the other waits for it."""
    if WAY == "evaluation" and RANK == 0:
        evaluate(model.module)
    elif WAY == "load" and RANK == 0:
        torch.save({"a": Opened()}, "checkpoint.pth")
        torch.load("checkpoint.pth", weights_only=False)
    elif WAY == "data" and RANK == 1:
        list(torch.utils.data.DataLoader(Computed(), num_workers=1))
    elif WAY == "pdb" and RANK == 1:
        look_into()
    elif WAY == "varying":
        time.sleep(random.random() * LONG / 6 if step % 3 == 0 else 0.01)  # Less than DDP_PROBE_HANG_AFTER.


def main():
    """Train until the seconds are over."""
    if WAY in ("import", "busy-import") and RANK == 1:
        busy = "end = time.monotonic() + %f\nwhile time.monotonic() < end: [].append(1)\n"
        with open("slow_module.py", "w", encoding="utf-8") as file:
            file.write("import time\n%s" % (busy if WAY == "busy-import" else "time.sleep(%f)\n") % LONG)
        sys.path.insert(0, os.getcwd())
        import slow_module  # noqa: F401
    dist.init_process_group("gloo")
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 1))
    if WAY == "compile":
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.abspath("cache%d" % RANK)
        net = torch.compile(net)
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    over, end = torch.zeros(1), time.monotonic() + SECONDS
    step = 0
    while not over.item():
        model(torch.ones(2 + step % 3, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        between(step, model)
        dist.barrier()
        over.fill_(float(time.monotonic() > end))
        dist.broadcast(over, 0)
        step += 1
    del model, optimizer, net
    gc.collect()
    dist.destroy_process_group()
    print("finished")


main()
