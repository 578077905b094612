"""A thread of ours in a process of the job: it wakes every so often and does one thing.

The thread is not one of threading's: a job that joins every thread of threading.enumerate() would wait for it forever, and the interpreter
does not wait for it at its end. It blocks all signals, so that they reach the job's threads. It holds no lock while it sleeps; what it imports,
it imports before it starts. So a forked child finds nothing of it but memory.
"""

import signal
from typing import Callable

from ddp_probe.shared import threads
from ddp_probe.shared.ours import suppress
from ddp_probe.traced.patching.guard import guard

NAME = "watcher"
"""What the guard and the faults call it."""

_PATIENCE = 2.0


class Daemon:
    """One thread that calls a function at an interval, until it is asked to end or the function has failed too often."""

    def __init__(self, look: Callable[[], None], interval: float) -> None:
        self._look = look
        self._interval = interval
        self.ending = False
        self._wake, self._ended = threads.allocate_lock(), threads.allocate_lock()
        self._wake.acquire()
        self._ended.acquire()

    def start(self) -> None:
        """Start the thread."""
        threads.start_new_thread(self._run, ())

    def turn_to(self, look: Callable[[], None], interval: float) -> None:
        """Call another function from here on, for the first time now, at another interval."""
        self._look, self._interval = look, interval
        with suppress(RuntimeError):  # It is not asleep: it has not been started, or is awake and has been woken before.
            self._wake.release()

    def end(self) -> None:
        """Ask the thread to end and wait until it has, for a while."""
        self.ending = True
        with suppress(RuntimeError):
            self._wake.release()
        self._ended.acquire(timeout=_PATIENCE)

    def _run(self) -> None:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            while not self.ending and not guard.off(NAME):
                guard.run(NAME, self._look)
                self._wake.acquire(timeout=self._interval)
        finally:
            self._ended.release()
