"""Raises an exception at each bytecode of the ledger's hot path in turn, as a signal handler may, and prints what the ledger holds wrong afterwards.

A trace function is given the frame that it interrupts, and runs between two bytecodes, as a handler does, but at those that are asked for.
After some exceptions the same call is made undisturbed; the ledger must tell of it what it told before.
"""

import json
import os
import socket
import sys
from collections import Counter

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader

import ddp_probe
from ddp_probe.activation.lifecycle import lifecycle
from ddp_probe.reading import whole_ledger
from ddp_probe.traced.record.sparse import CallCounts

HOT = tuple(os.path.join(os.path.dirname(ddp_probe.__file__), *part.split("/")) for part in ("traced/ledger/", "traced/patching/code_swap.py"))


EVERY = 6  # Bytecodes after which the ledger is looked at: a look takes longer than the rest.


CallCounts.is_written = lambda *_: True  # Each barrier, so that each of them has the same bytecodes.


class FromHandlerError(Exception):
    """What the handler raises."""


with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]))
dist.init_process_group("gloo")
collectives = lifecycle.session.collectives
tensor, weight = torch.zeros(3), torch.zeros(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)
swapped = {swap.code for swap in collectives._swaps}
originals = {swap.original for swap in collectives._swaps}


def reduce():
    """Make a collective."""
    dist.all_reduce(tensor)


def asynchronous():
    """Make one and wait for its work."""
    dist.all_reduce(tensor, async_op=True).wait()


def dropped():
    """Make one and let its work go; the next one closes its record."""
    dist.all_reduce(tensor, async_op=True)
    dist.barrier()


def objects():
    """Make one that makes others."""
    dist.broadcast_object_list([1], 0)


def barrier():
    """Make one whose lines are in the log, before and after it."""
    dist.barrier()


def refused():
    """Make one that fails."""
    try:
        dist.all_reduce("not a tensor")
    except (TypeError, RuntimeError, AttributeError):
        return


def backward():
    """Run a backward pass."""
    weight.sum().backward()


def step():
    """Take a step of an optimizer."""
    optimizer.step()


def batches():
    """Go through a loader to its end."""
    list(DataLoader([1]))


def refused_backward():
    """Run a backward pass that fails."""
    try:
        torch.autograd.backward([tensor])
    except RuntimeError:
        return


class Handler:
    """Raises at the bytecode with this number, of ours or of functions with these codes."""

    def __init__(self, at, codes=swapped, files=HOT):
        self.at = at
        self.codes = codes
        self.files = files
        self.seen = 0
        self.where = ""

    def __call__(self, frame, event, arg):
        """Be the trace function."""
        code = frame.f_code
        if not code.co_filename.startswith(self.files) and code not in self.codes:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            self.seen += 1
            if self.seen == self.at:
                self.where = "%s:%s" % (code.co_name, frame.f_lineno)
                raise FromHandlerError
        return self


def interrupted(scenario, at):
    """Run it with an exception at this bytecode; return where that was, nothing if it has fewer."""
    handler = Handler(at)
    collectives._works.look()  # What the last exception let go: each time, the scenario has the same bytecodes.
    sys.settrace(handler)
    try:
        scenario()
    except FromHandlerError:
        return handler.where
    finally:
        sys.settrace(None)
    return "swallowed at " + handler.where if handler.where else ""


def theirs(scenario):
    """Return how many bytecodes the functions of torch's have themselves that ours are woven into."""
    counter = Handler(0, originals, ())
    for swap in collectives._swaps:
        swap.function.__code__ = swap.original
    sys.settrace(counter)
    try:
        scenario()
    finally:
        sys.settrace(None)
        for swap in collectives._swaps:
            swap.function.__code__ = swap.code
    return counter.seen


def wrong(found, every={}):  # noqa: B006  # Every record so far; the ring forgets.
    """Return what is wrong in a ledger while its process is in no call and no phase."""
    every.update({one.number: one for one in found.records})
    outer = [one for one in every.values() if not one.is_inner and one.group is not None and one.op[-5:] != "group"]
    numbers = [one.seq for one in outer]
    if numbers != list(range(1, len(numbers) + 1)):
        yield "numbers %s" % [pair for pair in zip(numbers, numbers[1:]) if pair[1] != pair[0] + 1]
    for one in found.records:
        if one.is_open:
            yield "open: %s %d" % (one.op, one.number)
    if outer and found.records[-1].op == "barrier" and found.records[-1].is_inner:
        yield "the next call is inside another"
    for phase in found.phases:
        if phase.is_open:
            yield "open: %s" % phase.name
    yield from miscounted(outer, {(one.op, one.site): (one.calls, one.entered_ns) for one in found.sums if one.op})


def miscounted(records, told):
    """Return the sums that differ from those of the records. Of asynchronous calls that raised, those that were interrupted last had returned."""
    for key in {(one.op, one.site) for one in records}:
        of_key = [one for one in records if (one.op, one.site) == key]
        sure = [one.entered_ns for one in of_key if one.state != "raised" or one.waited_ns]
        unsure = [one.entered_ns for one in of_key if one.state == "raised" and one.is_async and not one.waited_ns]
        calls, entered = told.get(key, (0, 0))
        returned = calls - len(sure)
        if not 0 <= returned <= len(unsure) or entered != sum(sure + unsure[len(unsure) - returned :]) % (1 << 64):
            yield "sums of %s: %d calls, not %d" % (key[0], calls, len(sure))


def without_end():
    """Return the barriers that have a begin in the log, and neither an end nor an error, or several."""
    with open(lifecycle.session.recorder.path, encoding="utf-8") as log:
        lines = [json.loads(line) for line in log]
    barriers = [line for line in lines if line["event"] == "dist.collective" and "span" in line]
    spans = Counter(line["span"] for line in barriers)
    begun = [line["span"] for line in barriers if line["phase"] == "begin"]
    return ["lines of barrier %d: %d" % (span, spans[span]) for span in begun if spans[span] != 2]


def times(found):
    """Return how often each phase was entered."""
    return {phase.name: phase.times for phase in found.phases}


def read():
    """Return the ledger as it is now."""
    file = collectives.file
    file.flush()
    return whole_ledger.read(file.path)


def tried(scenario):
    """Interrupt it at each of its bytecodes; return how many of them are ours, and what was wrong after which."""
    scenario()
    before = times(read())
    scenario()
    once = {name: count - before.get(name, 0) for name, count in times(read()).items()}
    found, at, where, places = [], -1, "first", []
    while (where or not at) and not found:
        at += 1
        where = interrupted(scenario, at)  # At 0 it is not: from then on the way there is known.
        places.append(where)
        if where.startswith("swallowed"):
            found.append(where)
        if where and at % EVERY:
            continue
        before = times(read())
        scenario()
        dist.barrier()
        after = read()
        found += wrong(after)
        if {name: count - before.get(name, 0) for name, count in times(after).items()} != once:
            found.append("phases: %s" % times(after))
    found += without_end()
    return at - 1 - theirs(scenario), found and [places[-EVERY:], found]


scenarios = [globals()[name] for name in sys.argv[1:]]
print(json.dumps({scenario.__name__: tried(scenario) for scenario in scenarios}))
dist.destroy_process_group()
