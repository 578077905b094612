"""Catches Ctrl-C at random moments of a training loop, and prints how often, and how often the traceback shows a file of the probe."""

import json
import os
import random
import signal
import socket
import traceback

import torch
import torch.distributed as dist

import ddp_probe

TIMES = 500
OURS = os.path.dirname(ddp_probe.__file__)
with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]))
dist.init_process_group("gloo")
tensor, weight = torch.zeros(3), torch.zeros(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)
draw = random.Random(11).uniform


def train():
    """Take a step."""
    dist.all_reduce(tensor)
    dist.all_reduce(tensor, async_op=True).wait()
    dist.barrier()
    weight.sum().backward()
    optimizer.step()


train()
signal.signal(signal.SIGALRM, signal.default_int_handler)
told = {"caught": 0, "shown": 0, "lines": 0}
for _ in range(TIMES):
    try:
        signal.setitimer(signal.ITIMER_REAL, draw(2e-5, 1.2e-3))
        while True:
            train()
    except KeyboardInterrupt as exc:
        torch.set_grad_enabled(True)  # An interrupt inside torch.no_grad() leaves it off.
        told["caught"] += 1
        entries = traceback.extract_tb(exc.__traceback__)
        told["shown"] += any(entry.filename.startswith(OURS) for entry in entries)
        told["lines"] += any(entry.filename.endswith("distributed_c10d.py") for entry in entries)
signal.signal(signal.SIGALRM, signal.SIG_IGN)
print(json.dumps(told), flush=True)
os._exit(0)
