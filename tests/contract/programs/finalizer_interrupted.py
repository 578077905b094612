"""Ends children of multiprocessing, each with a signal at another bytecode of our finalizer, or in one of the job's; prints how each ended."""

import json
import multiprocessing
import os
import random
import signal
import sys
from multiprocessing import util

import torch.distributed as dist

COUNT, SEED = int(sys.argv[1]), sys.argv[2]
KINDS = {"RuntimeError": RuntimeError, "KeyboardInterrupt": KeyboardInterrupt, "SystemExit": SystemExit}


class Bytecodes:
    """Counts the bytecodes that are executed in our finalizer and below it, and raises the signal at one of them."""

    def __init__(self, at, end):
        self.at, self.end, self.count, self.outermost = at, end, 0, None

    def __call__(self, frame, event, _):
        """Trace."""
        if self.outermost is None and frame.f_code.co_name == "_finalized":
            self.outermost = frame
        if self.outermost is None:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.count += 1
            if self.count - 1 == self.at:
                sys.settrace(None)
                signal.raise_signal(signal.SIGUSR1)
        if event == "return" and frame is self.outermost:
            sys.settrace(None)
            os.write(self.end, b"ours %d\n" % self.count)
        return self


def child(kind, at, end, printed):
    """Become a rank, register two finalizers, and return; a signal comes in the last of them, in ours, or not at all."""
    os.dup2(os.open(printed, os.O_WRONLY | os.O_CREAT), 2)

    def handler(number, frame):
        raise KINDS[kind]("from the handler" if kind != "SystemExit" else 7)

    def last():
        os.write(end, b"last\n")
        if at == "in the job's":
            signal.raise_signal(signal.SIGUSR1)

    signal.signal(signal.SIGUSR1, handler)
    util.Finalize(None, os.write, args=(end, b"first\n"), exitpriority=10)
    util.Finalize(None, last, exitpriority=-10)
    dist.init_process_group("gloo", init_method="file://%s.store" % printed, rank=0, world_size=1)
    if at != "in the job's":
        sys.settrace(Bytecodes(at, end))


def ended(kind, at):
    """Return the exit code, the last line on stderr, what was written on the way, and the process."""
    end, begin = os.pipe()
    printed = os.path.abspath("%s-%s" % (kind, at))
    process = multiprocessing.get_context("fork").Process(target=child, args=(kind, at, begin, printed))
    process.start()
    process.join(60)
    os.close(begin)
    with os.fdopen(end) as said, open(printed) as errors:
        lines = errors.read().strip().split("\n")
        return process.exitcode, lines[-1], said.read().split(), process.pid


*_, whole, _ = ended("RuntimeError", -1)
count = int(whole[whole.index("ours") + 1])
answers = {"bytecodes": count, "undisturbed": whole, "kinds": {}}
for kind in KINDS:
    places = sorted(random.Random(SEED + kind).sample(range(count), COUNT))
    answers["kinds"][kind] = [ended(kind, "in the job's"), *(ended(kind, at) for at in places)]
print(json.dumps(answers))
