"""Makes calls in handlers of signals, functions of every kind, and in the same functions without a signal; prints the signal of each call."""

import functools
import os
import signal
import socket

import torch
import torch.distributed as dist

with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]))
dist.init_process_group("gloo")
expected = []


def told():
    """Make a call, for handlers alone."""
    dist.all_reduce(torch.ones(2))


def plain(number, frame):
    """Handle a signal."""
    if frame is not None:
        told()
    dist.barrier()


class Composed:
    """Calls several, as Lightning does."""

    def __init__(self, *handlers):
        """Keep them."""
        self.handlers = handlers

    def __call__(self, number, frame):
        """Call them."""
        for handler in self.handlers:
            handler(number, frame)

    def method(self, *arguments):
        """Handle a signal."""
        dist.all_reduce(torch.ones(2))


def partial(_, number, frame):
    """Handle a signal."""
    dist.barrier()


handlers = {
    signal.SIGTERM: Composed(plain, plain),
    signal.SIGUSR1: Composed(Composed().method),
    signal.SIGUSR2: Composed().method,
    signal.SIGHUP: functools.partial(partial, None),
    signal.SIGALRM: plain,
}
for number, handler in handlers.items():
    signal.signal(number, handler)
for _ in range(3):
    for number, handler in handlers.items():
        os.kill(os.getpid(), number)
        expected += [int(number)] * {signal.SIGTERM: 4, signal.SIGALRM: 2}.get(number, 1)
        dist.all_reduce(torch.ones(2))
        handler(number, None)
        expected += [0] * (3 if number == signal.SIGTERM else 2)
print(expected)
dist.destroy_process_group()
