"""A job that a scheduler preempts with SIGTERM 30 ms into its first save, and that knows how to leave."""

import os
import signal
import time

import torch


class PreemptedError(Exception):
    """What the handler raises, and the training catches."""


def handler(number, frame):
    """Unregister, then leave the training wherever it is."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise PreemptedError


signal.signal(signal.SIGTERM, handler)
signal.signal(signal.SIGALRM, lambda number, frame: os.kill(os.getpid(), signal.SIGTERM))
try:
    signal.setitimer(signal.ITIMER_REAL, 0.03)
    for number in range(200):
        torch.save({"step": number}, "step.pt")
        time.sleep(0.005)
    print("SIGTERM had no effect")
except PreemptedError:
    print("preempted: saved and left")
