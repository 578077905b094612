"""One rank that runs a loop when it is told to: reads `record 500` from stdin, and answers with the seconds of wall and CPU time that it took.

`count record 100 400` runs the loop twice under valgrind, each time counted from zero: the files that callgrind leaves hold the instructions.
"""

import os
import socket
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]))
torch.set_num_threads(1)
dist.init_process_group("gloo")
tensor, sample = torch.zeros(4), torch.zeros(4)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)


class Endless:
    """Samples without end, so that no loop meets the end of an epoch."""

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, _: int) -> torch.Tensor:
        return sample


batches = iter(DataLoader(Endless(), sampler=range(1 << 40)))


def record(times: int) -> None:
    """Make collectives."""
    for _ in range(times):
        dist.all_reduce(tensor)


def pair(times: int) -> None:
    """Make asynchronous collectives and wait for each."""
    for _ in range(times):
        dist.all_reduce(tensor, async_op=True).wait()


def step(times: int) -> None:
    """Train."""
    for _ in range(times):
        batch = next(batches)
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()


def control(*arguments: str) -> None:
    """Tell the valgrind around us something; it listens while its program runs, not while that waits for a child."""
    asked = subprocess.Popen(["callgrind_control", *arguments, str(os.getpid())], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while asked.poll() is None:
        time.sleep(0.01)  # Few instructions, as they are counted too.
        if time.monotonic() > end:
            asked.kill()
            raise SystemExit("valgrind does not listen")


for line in sys.stdin:
    counted, (name, *counts) = line.startswith("count "), line.replace("count ", "").split()
    loop = globals()[name]
    loop(50)
    if counted:
        control("-i", "on")
        loop(50)
    wall, cpu = time.perf_counter(), time.thread_time()
    for times in map(int, counts):
        if counted:
            control("-z")
        loop(times)
        if counted:
            control("-d=%s.%d" % (name, times))
    print(time.perf_counter() - wall, time.thread_time() - cpu, flush=True)
dist.destroy_process_group()
