"""Calls what runs at exit again and again, each time with a signal at another bytecode of ours; tells what came of it, by position."""

import json
import os
import random
import signal
import sys

from ddp_probe.shared import schema

ANSWER, COUNT, SEED = sys.argv[1], int(sys.argv[2]), sys.argv[3]


class WorkerDiedError(RuntimeError):
    """What the handler raises, as torch's does for a DataLoader worker that died."""


def handler(number, frame):
    """Raise."""
    raise WorkerDiedError("DataLoader worker is killed")


signal.signal(signal.SIGUSR1, handler)

import ddp_probe  # noqa: E402  # after the job's handler

ddp_probe.activate()
import torch  # noqa: E402

torch.save({}, "step.pt")
ending = sys.excepthook.__self__
leaving = ending._leaving
del ending._session.rows[2:]  # The line of each target would be most of what is traced.
(log,) = [os.path.join("runs", "latest", name) for name in os.listdir("runs/latest") if name.endswith(".jsonl")]
# What a function begins with no function can catch.
ENDING = ("_exit", "_tell_exit_call", "_write_exit_call", "_last", "close", "_close")
START = ("RESUME", "NOP", "SETUP_FINALLY", "COPY_FREE_VARS", "PUSH_NULL")


class Bytecodes:
    """Counts the bytecodes that are executed in a function and below it, and raises the signal at one of them."""

    def __init__(self, name, at=-1):
        self.name, self.at, self.count, self.near = name, at, 0, []
        self.first, self.raised = None, False

    def __call__(self, frame, event, _):
        """Trace."""
        if frame.f_code.co_filename == __file__:
            return None
        frame.f_trace_opcodes = True
        if frame.f_code.co_name == self.name and self.first is None:
            self.first = self.start(frame.f_code)
        if event == "opcode" and not (frame.f_code.co_name == self.name and frame.f_lasti < self.first):
            if frame.f_code.co_filename.endswith("ending.py") and frame.f_code.co_name in ENDING:
                self.near.append(self.count)
            self.count += 1
            if self.count - 1 == self.at:
                sys.settrace(None)  # What comes after it need not be counted.
                self.raised = True
                signal.raise_signal(signal.SIGUSR1)
        return self

    @staticmethod
    def start(code):
        """Return where the first bytecode is that can be interrupted."""
        import dis

        return next(each.offset for each in dis.get_instructions(code) if each.opname not in START)


def once(name, event, at=-1):
    """Call a function that is registered with atexit, and return the bytecodes and what went wrong."""
    ending._closed, ending._uncaught, ending._last_word = False, None, {}
    leaving._outermost = main
    leaving._called = schema.ProcessExit(exit_code=3)
    registered = getattr(ending, name)
    size, traced, raised = os.path.getsize(log), Bytecodes(name, at), None
    sys.settrace(traced)
    try:
        registered()
    except WorkerDiedError as exc:
        raised = exc
    finally:
        sys.settrace(None)
    with open(log, encoding="utf-8") as file:
        file.seek(size)
        written = [json.loads(line)["event"] for line in file]
    wrong = []
    if event not in written:
        wrong.append("no line: %s" % written)
    if (raised is not None) != traced.raised:
        wrong.append("raised %r" % raised)
    return traced, wrong


main = sys._getframe()
told = {}
for name, event in (("_tell_exit_call", "process.exit"), ("_exit", "process.end")):
    once(name, event)
    whole, wrong = once(name, event)
    assert not wrong, wrong
    rest = sorted(set(range(whole.count)) - set(whole.near))
    near = random.Random(SEED).sample(whole.near, min(COUNT, len(whole.near)))
    chosen = [*near, *random.Random(SEED).sample(rest, min(COUNT, len(rest)))]
    failed = {}
    for position in chosen:
        wrong = once(name, event, position)[1]
        if wrong:
            failed[position] = wrong
    told[name] = {"bytecodes": whole.count, "tried": len(chosen), "failed": failed}
with open(ANSWER, "w", encoding="utf-8") as file:
    json.dump(told, file)
