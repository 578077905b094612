"""Runs a backward pass in which torch warns, and prints what the warning becomes: an error if the main module is blamed, and the line it names."""

import os
import socket
import warnings

import torch
import torch.distributed as dist


def backward():
    """Run a backward pass through a module with a full hook, whose inputs need no gradient; torch warns three frames further in."""
    model = torch.nn.Linear(2, 2)
    model.register_full_backward_hook(lambda *_: warnings.warn("a hook", stacklevel=2))
    torch.autograd.backward([model(torch.ones(1, 2)).sum()])


with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]), RANK="0", WORLD_SIZE="1")
dist.init_process_group("gloo")
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    backward()
print([(os.path.basename(one.filename), one.lineno, one.category.__name__) for one in told])
for level in range(1, 7):
    warnings.resetwarnings()
    warnings.filterwarnings("error", module="__main__")
    try:
        loss = torch.ones(3, requires_grad=True) * 2
        loss.register_hook(lambda grad, level=level: warnings.warn("level", stacklevel=level))
        torch.autograd.backward([loss.sum()])
        print(level, "passes")
    except Warning as exc:
        print(level, type(exc).__name__, "in __main__")
backward()
print("done")
dist.destroy_process_group()
