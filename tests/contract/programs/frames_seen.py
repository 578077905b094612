"""Prints what code below each function that the ledger watches sees of the stack, and what an exception shows that passes out of it.

Each function of the tables is called with arguments that look around as soon as anything is asked of them, and then raise.
"""

import importlib
import inspect
import json
import os
import socket
import sys
import traceback
import warnings

import torch
import torch.distributed as dist

from ddp_probe.traced.ledger import collectives, optimizers, phases, works
from ddp_probe.traced.patching.code_swap import innermost

HERE = os.path.basename(__file__)
LEVELS = range(1, 7)
UNUSED = ("group_", "grad_variables", "use_local_synchronization", "backend_options", "split_ranks")
"""What torch refuses beside other arguments, or says is out of use."""
seen = []


class LookedAtError(Exception):
    """What is raised by whoever is asked for anything."""


def place(frame):
    """Return what tells a frame from another."""
    return [os.path.basename(frame.f_code.co_filename), frame.f_lineno, frame.f_code.co_name, frame.f_globals.get("__name__")]


def look():
    """Note the stack above the function that is asked, in each of the ways in which code can ask."""
    if seen:
        raise LookedAtError
    frame, chain = sys._getframe(1), []
    while frame is not None:
        chain.append(place(frame))
        frame = frame.f_back
    numbered = [place(sys._getframe(level)) for level in LEVELS]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for level in LEVELS:
            warnings.warn("look", stacklevel=level)
    blamed = [[os.path.basename(one.filename), one.lineno] for one in told]
    seen.append([chain, numbered, blamed, [place(one.frame) for one in inspect.stack(0)[1:4]], place(inspect.currentframe().f_back)])
    raise LookedAtError


def asked(*_, **__):
    """Be any method."""
    look()


NAMES = "getattribute bool len iter call eq ne hash contains getitem enter int index lt gt add str repr instancecheck setattr delattr".split()
Argument = type("Argument", (), {"__%s__" % name: asked for name in NAMES})


def entries(exc):
    """Return what the exception says of where it has been."""
    return [[os.path.basename(entry.filename), entry.lineno, entry.name, entry.line] for entry in traceback.extract_tb(exc.__traceback__)]


def called(function, below=6):
    """Call a function with nothing but arguments that look around, some frames down."""
    if below:
        return called(function, below - 1)
    seen.clear()
    given = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) and not name.startswith(UNUSED):
            given[name] = Argument()
    try:
        function(**given)
    except Exception as exc:
        return {"seen": list(seen), "raised": type(exc).__name__, "entries": entries(exc)}
    return {"seen": list(seen)}


def refused(method):
    """Call a method of a work that is being waited for with an argument that it does not take."""
    work = dist.all_reduce(torch.zeros(3), async_op=True)
    try:
        getattr(work, method)(Argument(), Argument(), Argument())
    except TypeError as exc:
        return entries(exc)
    finally:
        work.wait()


with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]), RANK="0", WORLD_SIZE="1")
for _, target in phases.targets():
    try:
        importlib.import_module(target.module)
    except ImportError:
        continue
dist.init_process_group("gloo")
for kind in vars(torch.optim).values():
    if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and kind is not torch.optim.Optimizer:
        kind([torch.zeros(2, 2, requires_grad=True)], lr=0.1)  # Its step is watched from here on.
found, functions = {}, []
for target in [*collectives.targets(), *optimizers.makers(), *(target for _, target in phases.targets())]:
    function = innermost(target)
    if function is not None and function not in functions:
        functions.append(function)
        found[str(target)] = called(function)
for method in works.METHODS:
    found["Work." + method] = refused(method)
swaps = []
if len(sys.argv) > 1:
    from ddp_probe.activation.lifecycle import lifecycle

    swaps = [str(swap.target) for swap in lifecycle.session.collectives._swaps]
    assert lifecycle.session.collectives.unwatched == {}, lifecycle.session.collectives.unwatched
print(json.dumps({"found": found, "swaps": swaps}))
dist.destroy_process_group()
