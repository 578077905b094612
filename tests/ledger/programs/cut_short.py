"""Cuts short, at bytecodes of ours drawn at random, what opens the ledger, what watches a new optimizer, and restore(); each is then called again.

Prints what the second call of each has left undone.
"""

import json
import os
import random
import sys

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

import ddp_probe
from ddp_probe.activation.lifecycle import lifecycle

FOLDER = os.path.dirname(ddp_probe.__file__)
OURS = tuple(os.path.join(FOLDER, *part.split("/")) for part in ("traced/ledger/", "traced/patching/code_swap.py", "traced/armed.py"))
ROUNDS = int(sys.argv[1])
NEVER = 1 << 60
chance = random.Random(int(sys.argv[2]))
weight = torch.zeros(2, 2, requires_grad=True)
torch.optim.Adam([weight])  # What torch imports for the first of all is not in the counts below.
PLAIN_STEP = torch.optim.SGD.step


class FromHandlerError(Exception):
    """What the handler raises."""


class Handler:
    """Raises at the bytecode of ours with this number."""

    def __init__(self, at):
        self.at = at
        self.seen = 0

    def __call__(self, frame, event, arg):
        """Be the trace function."""
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self.seen += 1
            if self.seen == self.at:
                raise FromHandlerError
        return self


def interrupted(step, at):
    """Do a step with an exception at this bytecode; return whether it has arrived, and how many bytecodes there were."""
    handler = Handler(at)
    sys.settrace(handler)
    try:
        step()
    except FromHandlerError:
        return True, handler.seen
    finally:
        sys.settrace(None)
    return False, handler.seen


def innermost(function):
    """Return what stands below decorators."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def watched():
    """Return every function that can be watched here, with its code."""
    functions = [innermost(value) for value in vars(c10d).values() if callable(value) and hasattr(innermost(value), "__code__")]
    functions += [innermost(PLAIN_STEP), torch.autograd.backward, innermost(vars(torch.optim.Optimizer).get("_patch_step_function", len))]
    return [(function, function.__code__) for function in functions if hasattr(function, "__code__")]


def open_ledger():
    """Make the process group, as a job does, in whose beginning the ledger is opened."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def make():
    """Make the first optimizer of its class."""
    torch.optim.SGD.step = PLAIN_STEP
    torch.optim.SGD([weight], 0.1)


STEPS = {"open": open_ledger, "make": make, "restore": ddp_probe.restore}
originals = watched()
before = {name: getattr(torch._C._distributed_c10d.Work, name) for name in ("wait", "is_completed", "get_future")}
counts, wrong, arrived = {}, [], 0
for number in range(ROUNDS * len(STEPS) + 1):
    torch.optim.SGD.step = PLAIN_STEP
    cut = list(STEPS)[number % len(STEPS)] if number else ""
    at = chance.randrange(1, counts[cut]) if cut else NEVER
    ddp_probe.activate()
    for name, step in STEPS.items():
        if not cut:
            _, counts[name] = interrupted(step, NEVER)
        elif name != cut:
            step()
        else:
            came, _ = interrupted(step, at)
            arrived += came
            if not came:
                wrong.append([cut, at, "nothing came"])
            if name != "open" or not dist.is_initialized():
                step()
        if name == "make":
            swapped = {swap.function for swap in lifecycle.session.collectives._swaps if swap.function.__code__ is swap.code}
            missing = [each.__name__ for each in (innermost(PLAIN_STEP), innermost(dist.all_reduce)) if each not in swapped]
            wrong += [[cut, at, "not watched", missing]] if missing else []
            dist.all_reduce(torch.zeros(1), async_op=True).wait()
    left = [function.__name__ for function, code in originals if function.__code__ is not code]
    left += [name for name, value in before.items() if getattr(torch._C._distributed_c10d.Work, name) is not value]
    if left:
        wrong.append([cut, at, "not restored", left])
    if dist.is_initialized():
        dist.destroy_process_group()
print(json.dumps({"arrived": arrived, "counts": counts, "wrong": wrong}))
