"""Trains a few steps with DDP, calls collectives in several ways, prints how often, waits until its ledger has the sums, and is killed."""

import contextlib
import json
import os
import signal
import socket
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from ddp_probe.activation.lifecycle import lifecycle
from ddp_probe.reading import whole_ledger

STEPS, NAP, LINES = 12, 0.004, 300


class Slow(Dataset):
    """Takes its time for a row."""

    def __len__(self):
        return STEPS

    def __getitem__(self, number):
        time.sleep(NAP)
        return torch.ones(4)


with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]))
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
tensor = torch.zeros(3)


def reduce(times):
    """Make so many collectives at one line."""
    for _ in range(times):
        dist.all_reduce(tensor)


for row in DataLoader(Slow()):
    model(row).sum().backward()
    optimizer.step()
    reduce(2)
for _ in range(5):
    dist.broadcast(tensor, 0, async_op=True).wait()
for _ in range(3):
    dist.broadcast_object_list([1], 0)
with contextlib.suppress(TypeError, RuntimeError, AttributeError):
    dist.all_reduce("refused")
threads = [threading.Thread(target=reduce, args=(50,)) for _ in range(2)]
for thread in threads:
    thread.start()
    thread.join()  # One after the other: gloo takes no two at once.
child = os.fork()
if not child:
    try:
        dist.all_reduce("refused")
    except (TypeError, RuntimeError, AttributeError):
        os._exit(0)
os.waitpid(child, 0)
exec(compile("dist.barrier()\n" * LINES, __file__, "exec"))
path = lifecycle.session.collectives.file.path
while sum(one.calls for one in whole_ledger.read(path).sums if one.op in ("barrier", "")) < LINES:
    time.sleep(0.05)
print(
    json.dumps({"steps": STEPS, "nap": NAP, "all_reduce": 2 * STEPS + 100, "broadcast": 5, "broadcast_object_list": 3, "barrier": LINES}), flush=True
)
os.kill(os.getpid(), signal.SIGKILL)
