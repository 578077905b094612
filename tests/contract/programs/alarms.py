"""A training-like loop under many alarms whose handler raises; tells how many the handler raised and how many reached the job."""

import inspect
import json
import os
import random
import signal
import statistics
import sys
import time
from contextlib import suppress

import torch

LINES = 8  # Of each line a hundred calls are recorded. Of 600 calls two lose their end: of thousands, one in a hundred is out of reach of chance.
ANSWER, COUNT = sys.argv[1], int(sys.argv[2])


class PreemptedError(Exception):
    """What this job's handler raises, among others."""


KINDS = (PreemptedError, TimeoutError, ValueError, RecursionError)
raised = 0


def handler(number, frame):
    """Raise, as torchelastic's handler and every alarm's timeout do."""
    global raised
    raised += 1
    raise KINDS[raised % 4]("alarm %d" % raised)


def step(number):
    """Do what a training does, each call of it watched; one of them fails, and the job goes on."""
    model.to("cpu")
    torch.load("weights.pt")
    torch.save(number, "step.pt", _use_new_zipfile_serialization=False)  # torch 1.12 aborts if a zip is left half-written
    with suppress(FileNotFoundError):
        torch.load("missing-%d.pt" % number)


def steps():
    """Return the step several times, each at lines of its own."""
    source = inspect.getsource(step)
    for copy in range(LINES):
        names = dict(globals())
        exec(compile("\n" * 100 * copy + source, __file__, "exec"), names)
        yield names["step"]


if not os.environ.get("PLAIN"):
    import ddp_probe

    ddp_probe.activate()
signal.signal(signal.SIGALRM, handler)
model = torch.nn.Linear(4, 4)
torch.save(model.state_dict(), "weights.pt")
chance = random.Random(7)
reached = []
number = 0
copies = list(steps())
taken = []
for copy in copies * 3:
    begun = time.monotonic()
    copy(0)
    taken.append(time.monotonic() - begun)
longest = 2 * statistics.median(taken)  # About half of the steps meet an alarm, however busy the machine is.
while raised < COUNT:
    number += 1
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00002, longest))
        copies[number % LINES](number)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KINDS as exc:
        reached.append(str(exc))
with open(ANSWER, "w") as file:
    json.dump({"raised": raised, "reached": len(set(reached)), "steps": number}, file)
