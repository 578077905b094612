"""Comes to optimizers in each of the ways there are, and prints which steps are watched after each, and how often the ledger has counted them."""

import json
import threading

import torch
import torch.distributed as dist

import ddp_probe
from ddp_probe.activation.lifecycle import lifecycle
from ddp_probe.reading import whole_ledger

NAMES = ("Adagrad", "Adamax", "Rprop", "ASGD", "SGD")
weight = torch.zeros(2, 2, requires_grad=True)


def innermost(name):
    """Return the step of a class below its decorators."""
    function = getattr(torch.optim, name).step
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


class Mine(torch.optim.Rprop):
    """An optimizer of the job, whose step calls that of torch."""

    def step(self, closure=None):
        """Take torch's step."""
        return super().step(closure)


def watched():
    """Return the classes whose step is watched."""
    return [name for name in NAMES if innermost(name).__code__ is not plain[name]]


def unpickled():
    """Return an optimizer as unpickling makes it."""
    optimizer = torch.optim.Adamax.__new__(torch.optim.Adamax)
    optimizer.__setstate__({"defaults": {}, "state": {}, "param_groups": []})
    return optimizer


def in_threads():
    """Make the first two of a class at the same time."""
    ready, made = threading.Barrier(2), []

    def make():
        ready.wait()
        made.append(torch.optim.ASGD([weight]))

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made[0]


plain = {name: innermost(name).__code__ for name in NAMES}
before = torch.optim.Adagrad([weight])
ddp_probe.activate()
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
found = {"before": watched()}
ways = {"unpickled": unpickled, "derived": lambda: Mine([weight]), "threads": in_threads, "made": lambda: torch.optim.SGD([weight], 0.1)}
weight.sum().backward()
before.step()
for way, make in ways.items():
    optimizer = make()
    found[way] = watched()
    optimizer.step()
swaps = [str(swap.target) for swap in lifecycle.session.collectives._swaps]
found["swapped twice"] = sorted(name for name in set(swaps) if swaps.count(name) > 1)
path = lifecycle.session.collectives.file.path
certificate = ddp_probe.restore()
found["restored"] = [certificate.ok, watched()]
found["steps"] = [phase.times for phase in whole_ledger.read(path).phases if phase.name == "optimizer"]
torch.optim.RMSprop([weight]).step()
dist.destroy_process_group()
print(json.dumps(found))
