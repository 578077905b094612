"""Calls the exception hook again and again, each time with a signal at another bytecode of ours; tells what came of it, by position."""

import json
import os
import random
import signal
import sys

ANSWER, COUNT, SEED = sys.argv[1], int(sys.argv[2]), sys.argv[3]
shown, ignored = [], []


class WorkerDiedError(RuntimeError):
    """What the handler raises, as torch's does for a DataLoader worker that died."""


def hook(kind, exc, trace):
    """Stand for the hook that the job had before the probe came."""
    shown.append((kind is type(exc), trace is exc.__traceback__))


def handler(number, frame):
    """Raise."""
    raise WorkerDiedError("DataLoader worker is killed")


sys.excepthook = hook
sys.unraisablehook = lambda told: ignored.append(told.exc_type)
signal.signal(signal.SIGUSR1, handler)

import ddp_probe  # noqa: E402  # after the job's hook

ddp_probe.activate()
import torch  # noqa: E402

torch.save({}, "step.pt")
ending = sys.excepthook.__self__
(log,) = [os.path.join("runs", "latest", name) for name in os.listdir("runs/latest") if name.endswith(".jsonl")]
OURS = os.path.dirname(ddp_probe.__file__) + os.sep
# What a hook begins with no hook can catch, and neither what it ends with once all is done: there is no signal.
START = ("RESUME", "NOP", "SETUP_FINALLY", "COPY_FREE_VARS", "PUSH_NULL")


class Bytecodes:
    """Counts the bytecodes that are executed in the hook, and raises the signal at one of them."""

    def __init__(self, at=-1):
        self.at, self.count, self.of_the_hook = at, 0, []

    def __call__(self, frame, event, _):
        """Trace."""
        if frame.f_code.co_filename == __file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and not (frame.f_code.co_name == "_excepthook" and (shown or frame.f_lasti < self.start(frame.f_code))):
            if frame.f_code.co_filename.endswith("ending.py") and frame.f_code.co_name in ("_excepthook", "call", "_tell", "_note"):
                self.of_the_hook.append(self.count)
            self.count += 1
            if self.count - 1 == self.at:
                signal.raise_signal(signal.SIGUSR1)
        return self

    @staticmethod
    def start(code):
        """Return where the first bytecode is that can be interrupted."""
        import dis

        return next(each.offset for each in dis.get_instructions(code) if each.opname not in START)


def once(at=-1):
    """Call the hook, and return the bytecodes and what went wrong."""
    ending._closed, ending._uncaught, ending._last_word = False, None, {}
    shown.clear()
    ignored.clear()
    size, traced, wrong = os.path.getsize(log), Bytecodes(at), []
    try:
        raise KeyError("img")
    except KeyError as exc:
        error = exc
    sys.settrace(traced)
    try:
        sys.excepthook(KeyError, error, error.__traceback__)
    except BaseException as exc:
        wrong.append("raised %r" % exc)
    finally:
        sys.settrace(None)
    with open(log, encoding="utf-8") as file:
        file.seek(size)
        ends = sum('"process.end"' in line and '"KeyError"' in line for line in file)
    if shown != [(True, True)]:
        wrong.append("shown %r" % shown)
    if not ends:
        wrong.append("no end line")
    if ignored != ([WorkerDiedError] if 0 <= at < traced.count else []):
        wrong.append("ignored %r" % ignored)
    return traced, wrong


once()
whole, wrong = once()
assert not wrong, wrong
rest = sorted(set(range(whole.count)) - set(whole.of_the_hook))
chosen = [*whole.of_the_hook, *random.Random(SEED).sample(rest, min(COUNT, len(rest)))]
failed = {}
for position in chosen:
    wrong = once(position)[1]
    if wrong:
        failed[position] = wrong
with open(ANSWER, "w", encoding="utf-8") as file:
    json.dump({"bytecodes": whole.count, "tried": len(chosen), "failed": failed}, file)
sys.excepthook = sys.__excepthook__
