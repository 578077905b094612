"""Prints what a record and a phase cost, beside a plain call of the same kind: the least of many short rounds, as others use the machine too."""

import json
import os
import socket
import sys
import time
import types

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ddp_probe.activation.lifecycle import lifecycle
from ddp_probe.traced.patching import Target
from ddp_probe.traced.patching.code_swap import Hooks, woven_swap
from ddp_probe.traced.patching.woven import SourceFiles

with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]))
dist.init_process_group("gloo")
collectives = lifecycle.session.collectives
tensor = torch.zeros(16)


def of_torch(function, **names):
    """Return the function as if it were torch's own."""
    return types.FunctionType(function.__code__.replace(co_filename=c10d.__file__), {**vars(c10d), **names}, function.__name__, function.__defaults__)


def collective(tensor, op=None, group=None, async_op=False):
    """Do nothing."""


def _wrapper(*args, **kwargs):
    try:
        return collective(*args, **kwargs)
    except Exception:
        raise


def phase():
    """Do nothing."""


def bare_collective(tensor, op=None, group=None, async_op=False):
    """Do nothing."""


def bare_phase():
    """Do nothing."""


wrapper, bare = of_torch(_wrapper, collective=collective), of_torch(_wrapper, collective=bare_collective)


def least(*calls):
    """Return microseconds for each of these calls, the least of many short rounds in turn: a busy neighbour comes to all of them alike."""
    found = [[] for _ in calls]
    for _ in range(400):
        for times, (function, *args) in zip(found, calls):
            start = time.perf_counter()
            for _ in range(100):
                function(*args)
            times.append((time.perf_counter() - start) / 100 * 1e6)
        time.sleep(0.002)
    return [min(times) for times in found]


(reduced,) = [one for one in collectives._swaps if str(one.target).endswith(".all_reduce")]
found = {const.__name__: const for const in reduced.code.co_consts if callable(const)}
calls, sources = Hooks(found["begin"], found["end"], lambda token: None), SourceFiles()
woven_swap(Target("x", "collective"), collective, calls, [1, "tensor", False, None, "group", "async_op"], sources).put_in()
woven_swap(Target("x", "phase"), phase, collectives._phases[2], [], sources).put_in()


def uncounted(tensor, op=None, group=None, async_op=False):
    """Do nothing."""


code = 303  # Of an operation about groups: the same path without a row of the sums.
woven_swap(Target("x", "uncounted"), uncounted, calls, [code, "tensor", False, None, "group", "async_op"], sources).put_in()


def sums():
    """Return what a record costs more with its row of the sums; the two take turns."""
    found = {collective: [], uncounted: []}
    for _ in range(120):
        for function, times in found.items():
            start = time.thread_time()
            for _ in range(1000):
                function(tensor)
            times.append((time.thread_time() - start) * 1e3)
    return min(found[collective]) - min(found[uncounted])


plain, empty, recorded, in_phase = least((bare, tensor), (bare_phase,), (wrapper, tensor), (phase,))
told = {
    "sums_us": sums(),
    "plain_us": plain,
    "record_us": recorded - plain,
    "phase_us": in_phase - empty,
    "python": sys.version.split()[0],
}
print(json.dumps({name: round(value, 3) if isinstance(value, float) else value for name, value in told.items()}))
dist.destroy_process_group()
