"""Forks a process for each line that it reads; the child writes records as fast as it can until it is killed, or dies by itself.

A line is FILE, SIGNAL and MICROSECONDS, with tabs between them; SIGNAL is a name, or `segv` and `abort` for a child that brings it about itself.
The answer is a line: how many calls had begun, which the child counts in shared memory inside of each call, so that it knows of no record that is not
written.
"""

import ctypes
import mmap
import os
import resource
import signal
import sys
import time

import torch

from ddp_probe.traced.hangs.others import Held
from ddp_probe.traced.ledger import phases
from ddp_probe.traced.ledger.calls import Frames, Here, hooks
from ddp_probe.traced.ledger.groups import Groups, Sums
from ddp_probe.traced.ledger.phases import StepRing
from ddp_probe.traced.patching import Switch, Target
from ddp_probe.traced.patching.code_swap import Hooks, woven_swap
from ddp_probe.traced.patching.woven import SourceFiles
from ddp_probe.traced.record.ledger_memory import Author, create

inside = memoryview(mmap.mmap(-1, 4096)).cast("Q")
tensors = [torch.zeros(7 * number) for number in range(5)]
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def all_reduce(tensor, src=None, group=None, async_op=False):
    """Stand for a collective: count that it has begun."""
    inside[0] += 1


def step():
    """Stand for a phase."""


def nothing(*_: int) -> None:
    """Stand for what writes a line of a call."""


def write(path: str, fate: str, microseconds: int) -> None:
    """Write until the end; record n has 7 * (n % 5) elements and peer n % 5."""
    file, on = create(path, Author(3, 8, 0, "", "host")), Switch()
    groups = Groups(file)
    groups.default = groups.none
    sums = Sums(file.map)
    file.before_flush = sums.put
    here, frames = Here(), Frames()
    calls, _ = hooks(file, on, groups, sums, here, frames, lambda *_: False, nothing, nothing)
    sources = SourceFiles()
    woven_swap(Target("x", "all_reduce"), all_reduce, Hooks(*calls), [1, "tensor", "src", None, "group", "async_op"], sources).put_in()
    woven_swap(Target("x", "step"), step, phases.hooks(file, on, StepRing(file.map), here, frames)[2], [], sources).put_in()
    end = time.monotonic_ns() + microseconds * 1000
    number = 0
    while True:
        number += 1
        all_reduce(tensors[number % 5], number % 5)
        if not number % 3:
            step()
        if not number % 500:  # As the watcher's thread does from time to time.
            file.flush()
        if fate in ("segv", "abort") and inside[1] and time.monotonic_ns() > end:
            ctypes.string_at(0) if fate == "segv" else os.abort()


print("ready", flush=True)
for line in sys.stdin:
    path, fate, microseconds = line.split("\t")
    inside[0] = inside[1] = 0
    child = os.fork()
    if child == 0:
        write(path, fate, int(microseconds))
    while not inside[0]:
        time.sleep(0.0005)
    held = Held()  # As the launcher of a rank does once it sees its ledger.
    held.take(path + ".ledger", child)
    inside[1] = 1
    if fate not in ("segv", "abort"):
        time.sleep(int(microseconds) / 1e6)
        os.kill(child, getattr(signal, fate))
    _, status = os.waitpid(child, 0)
    held.save(path + ".ledger")
    print(inside[0], os.WTERMSIG(status), flush=True)
