"""What wakes while the job's threads hang: a thread of ours. It knows when it could not wake, for that time is not a hang."""

import signal
import time
from typing import Callable, Optional

from ddp_probe.shared import schema, threads
from ddp_probe.shared.ours import suppress
from ddp_probe.traced.patching.guard import guard

NAME = "watcher"
"""What the guard and the faults call it."""

_TO_END = 2.0
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""It goes on while the host sleeps, which the monotonic clock does not; the clock of the day may be set."""


def by_boot() -> float:
    """Return the seconds since the host was started, its sleep included."""
    return time.clock_gettime(_CLOCK)


class Daemon:
    """One thread that calls a function at an interval, until it is asked to end or the function has failed too often."""

    def __init__(self, look: Callable[[], None], interval: float) -> None:
        self._look = look
        self._interval = interval
        self.ending = False
        self.woke = time.monotonic_ns()
        """When the thread has woken last. What is counted up to here does not grow if the process is paused in the middle of a look."""
        self.late = 0.0
        """Seconds by which that was late: the host, its container or the process stood still, or native code held the GIL."""
        self._began = by_boot()
        self.at_end: Callable[[], None] = _nothing
        """What the thread does last, whatever ends it."""
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

    def excuse(self) -> None:
        """What this look has done until now may take long: it does not make the thread late."""
        self._began = by_boot()

    def end(self) -> None:
        """Ask the thread to end and wait until it has, for a while."""
        self.ending = True
        with suppress(RuntimeError):
            self._wake.release()
        self._ended.acquire(timeout=_TO_END)

    def _run(self) -> None:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            self._began = by_boot()
            while not self.ending and not guard.off(NAME):
                guard.run(NAME, self._look)
                interval = self._interval
                self._wake.acquire(timeout=interval)
                self.woke, now = time.monotonic_ns(), by_boot()
                self.late, self._began = max(0.0, now - self._began - interval), now
        finally:
            self.at_end()
            self._ended.release()


def _nothing() -> None:
    """Stand for what has nothing to do at its end."""


class Pauses:
    """Notices that this process did not run for so long that what has not moved meanwhile is not a hang."""

    def __init__(self, after: float) -> None:
        self._most = after / 2
        self._cpu = time.process_time()
        self._resumed = 0

    def resumed(self, daemon: Daemon) -> Optional[schema.Event]:
        """Return the event of it, once after each such time; to be called each time that the thread wakes."""
        before, self._cpu = self._cpu, time.process_time()
        if daemon.late <= self._most:
            return None
        self._resumed = daemon.woke
        return schema.ProcessResumed(lasted=daemon.late, cpu=round(self._cpu - before, 2))

    def counted(self, moved: int, now: int) -> float:
        """Return for how many seconds nothing has moved, counted from the end of such a time."""
        return (now - max(moved, self._resumed)) / 1e9
