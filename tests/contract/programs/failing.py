"""Ends in one of many ways, most of them through a call that the probe watches."""

import os
import signal
import sys
import threading

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WAYS = {}


def way(function):
    """Keep a way to end under its name."""
    WAYS[function.__name__] = function
    return function


@way
def wrap():
    """Fail in DDP.__init__, called by a class of the program's own."""

    class Mine(DistributedDataParallel):
        def __init__(self, module):
            super().__init__(module, device_ids=[0])

    dist.init_process_group("gloo")
    Mine(torch.nn.Linear(1, 1).to("cpu"))


@way
def chained():
    """Fail to load, then raise from that, then fail while handling it, in a group where there are groups."""
    try:
        try:
            torch.load("/nowhere/weights.pth")
        except OSError as exc:
            raise KeyError("first") from exc
    except KeyError:
        try:
            torch.nn.Linear(1, 1).to("nonsense")
        except RuntimeError as exc:
            group = globals().get("ExceptionGroup", vars(__import__("builtins")).get("ExceptionGroup"))
            raise (group("several", [exc, ValueError("x")]) if group else exc)  # noqa: B904 - the context is what is looked at.


@way
def nested():
    """Raise from inside a move that a move calls, and from a checkpoint that the loading itself runs."""

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(1, 1)

        def _apply(self, fn, *rest):
            self.inner.to("cpu")
            raise ZeroDivisionError("while moving")

    print("before", flush=True)
    Outer().to(torch.float64)


@way
def thread():
    """Fail in a thread, and end well."""
    other = threading.Thread(target=lambda: torch.load("/nowhere/weights.pth"))
    other.start()
    other.join()


@way
def leave():
    """Leave with a code of the program's own, after a failure."""
    try:
        torch.load(__file__)
    except Exception as exc:
        print(type(exc).__name__, flush=True)
        sys.exit(7)


@way
def interrupted():
    """Be interrupted inside a watched call."""

    class Module(torch.nn.Module):
        def _apply(self, fn, *rest):
            os.kill(os.getpid(), signal.SIGINT)
            return super()._apply(fn, *rest)

    Module().to("cpu")


@way
def terminated():
    """Be ended from outside, as a scheduler does."""
    dist.init_process_group("gloo")
    os.kill(os.getpid(), signal.SIGTERM)


@way
def init_dist():
    """Fail in mmengine's init_dist."""
    from mmengine.dist import init_dist

    init_dist("pytorch", backend="gloo")


@way
def assertion():
    """Fail the way a program does that the probe knows nothing about."""
    print("out", flush=True)
    sys.stderr.write("err\n")
    raise AssertionError({"a": [1, 2]})


if __name__ == "__main__":
    if sys.argv[1] == "names":
        print("\n".join(WAYS))
    else:
        WAYS[sys.argv[1]]()
