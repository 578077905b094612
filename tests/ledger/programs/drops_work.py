"""Lets work go that nobody has waited for, while the handler of a timer raises; prints how often it raised, and how often that arrived."""

import json
import os
import random
import signal
import socket
import sys

import torch
import torch.distributed as dist

KIND = {"Exception": Exception, "RecursionError": RecursionError, "KeyboardInterrupt": KeyboardInterrupt}[sys.argv[1]]
ROUNDS = 1500


class FromHandler(KIND):
    """What the handler raises."""


with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]))
dist.init_process_group("gloo")
tensor = torch.zeros(3)
draw = random.Random(7).uniform
told = {"raised": 0, "caught": 0, "lost": []}


def handler(number, frame):
    """Raise in whatever runs at the moment."""
    told["raised"] += 1
    raise FromHandler


def ignored(what):
    """Note what the interpreter prints and passes over."""
    told["lost"].append(repr(what.object))


sys.unraisablehook = ignored
signal.signal(signal.SIGALRM, handler)
for _ in range(ROUNDS):
    try:
        signal.setitimer(signal.ITIMER_REAL, draw(1e-5, 3e-4))
        work = dist.all_reduce(tensor, async_op=True)
        work = None
        for _ in range(200):
            pass
        signal.setitimer(signal.ITIMER_REAL, 0)
    except FromHandler:
        told["caught"] += 1
    finally:
        work = None
signal.signal(signal.SIGALRM, signal.SIG_IGN)
dist.barrier()
print(json.dumps(told))
dist.destroy_process_group()
