"""Makes calls of torch with ever fewer frames left below the recursion limit, and prints with how many each still works, and how it ends with fewer.

Each call is made from a line that has made it before, and from one that has not. What has made it recurses for ever afterwards, which Python has to
end in the usual way.
"""

import io  # noqa: F401  # A call uses it.
import json
import os
import socket

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader

FROM = 60
reached = []

with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]))
dist.init_process_group("gloo")
tensor, weight = torch.zeros(3), torch.zeros(3, requires_grad=True)
weight.grad = torch.ones(3)
optimizer = torch.optim.SGD([weight], 0.1)
batches = iter(DataLoader(range(100_000)))
works = []

CALLS = {
    "reduce": "dist.all_reduce(tensor)",
    "asynchronous": "works.append(dist.all_reduce(tensor, async_op=True))",
    "wait": "works[-1].wait()",
    "barrier": "dist.barrier()",
    "objects": "dist.broadcast_object_list([1], 0)",
    "backward": "weight.sum().backward()",
    "step": "optimizer.step()",
    "made": "torch.optim.SGD([weight], 0.1)",
    "unpickled": "optimizer.__setstate__(optimizer.__getstate__())",
    "batch": "next(batches)",
    "save": "torch.save(tensor, io.BytesIO())",
}
DOWN = """
def down(count):
    if count:
        return down(count - 1)
    %s
    reached[:] = [True]
    return forever()
"""


def forever():
    """Fill the stack."""
    return forever()


def down_to(statement):
    """Return a function that recurses so often, and makes the call there: its code has never run."""
    space = dict(globals())
    exec(compile(DOWN % statement, __file__, "exec"), space)
    return space["down"]


def outcome(down, count):
    """Return what becomes of the call."""
    reached.clear()
    try:
        down(count)
    except BaseException as exc:
        return "ok" if reached and type(exc) is RecursionError else type(exc).__name__
    return "no end"


def deepest():
    """Return how often a function can recurse here."""
    down, count = down_to("pass"), 0
    while outcome(down, count) == "ok":
        count += 1
    return count - 1


def tried(statement, is_new):
    """Return what becomes of the call with each number of frames that are left."""
    down = down_to(statement)
    works.append(dist.all_reduce(tensor, async_op=True))
    outcome(down, 0)
    found = {}
    for left in range(FROM, -1, -1):
        if not statement.startswith("works["):
            works.clear()
        else:
            works.append(dist.all_reduce(tensor, async_op=True))
        found[left] = outcome(down_to(statement) if is_new else down, MOST - left)
    return found


MOST = deepest()
found = {}
for name, statement in CALLS.items():
    for is_new in (False, True):
        outcomes = tried(statement, is_new)
        fails = [left for left, text in outcomes.items() if text != "ok"]
        kinds = sorted({outcomes[left] for left in fails})
        found["%s, %s" % (name, "new" if is_new else "known")] = {"needs": max(fails) + 1, "fails": len(fails), "kinds": kinds}
dist.barrier()
print(json.dumps(found))
