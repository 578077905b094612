"""Calls each way to exit with what it takes and what it does not, catches what comes, and prints it with its frames; leaves by os._exit."""

import builtins
import os
import sys
import traceback

import torch

QUIT = builtins.quit


class Index:
    """Stands for a number, and fails."""

    def __index__(self):
        """Fail."""
        raise LookupError("no number")


def full(function):
    """Call a function where the stack is full."""

    def deeper():
        try:
            return deeper()
        except RecursionError:
            return function(5)

    deeper()


CALLS = {
    "exit": lambda: sys.exit(3),
    "nothing": sys.exit,
    "text": lambda: sys.exit("text"),
    "two": lambda: sys.exit(1, 2),
    "named": lambda: sys.exit(status=1),
    "of an exception": lambda: sys.exit(ValueError("why")),
    "map": lambda: list(map(sys.exit, [4])),
    "a full stack": lambda: full(sys.exit),
    "quit": lambda: QUIT(4),
    "named quit": lambda: QUIT(code=4),
    "two to quit": lambda: QUIT(1, 2),
    "wrong name to quit": lambda: QUIT(status=1),
    "_exit of nothing": os._exit,
    "_exit of a text": lambda: os._exit("text"),
    "_exit of a float": lambda: os._exit(2.5),
    "_exit of two": lambda: os._exit(1, 2),
    "_exit of a wrong name": lambda: os._exit(code=2),
    "_exit of a large number": lambda: os._exit(1 << 80),
    "_exit of an index": lambda: os._exit(Index()),
}
try:
    raise KeyError("handled")
except KeyError:
    for name, call in CALLS.items():
        try:
            call()
        except BaseException as exc:
            frames = ["%s:%d" % (each.name, each.lineno) for each in traceback.extract_tb(exc.__traceback__)]
            if name == "a full stack":  # There is no room to take a frame out.
                frames = []
            print(name, type(exc).__name__, exc.args, repr(exc.__context__)[:60], repr(exc.__cause__), frames, flush=True)
torch.save({}, "step.pt")
os._exit(status=6)
