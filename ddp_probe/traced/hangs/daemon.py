"""What wakes while the job's threads hang: a thread of ours, and faulthandler's C timer for when native code holds the GIL."""

import os
import signal
import sys
import threading
from typing import Any, Callable, List

from ddp_probe.shared import threads
from ddp_probe.shared.ours import ours, suppress
from ddp_probe.traced.patching import Call, Observer, PatchRegistry, Target
from ddp_probe.traced.patching.guard import guard
from ddp_probe.traced.patching.wrapper import without_us
from ddp_probe.traced.record.text_file import TextFile

NAME = "watcher"
"""What the guard and the faults call it."""

_TO_END = 2.0


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
        self._ended.acquire(timeout=_TO_END)

    def _run(self) -> None:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            while not self.ending and not guard.off(NAME):
                guard.run(NAME, self._look)
                self._wake.acquire(timeout=self._interval)
        finally:
            self._ended.release()


# The dead man's switch: faulthandler's C timer writes all stacks if the watcher's thread cannot run, because native code holds the GIL.
#
# Python has one such timer. It is the job's if the job uses it: our observers of faulthandler's two functions see that, and ours is not set
# again until the job cancels its own. If the job may have set it before we came, ours is never set: nobody can ask faulthandler. That is so if
# faulthandler was imported already and the process had threads that Python does not know of, of which one may be the timer's.
#
# The timer's C thread does not exist in a forked child, which would wait for it when it ends. So ours is taken away before each fork.

_FOR_LOCK = 0.5
_NAMES = ("dump_traceback_later", "cancel_dump_traceback_later")


class Timer(Observer):
    """Ours, for as long as the job does not use it."""

    name = "timer"
    always = True

    def __init__(self) -> None:
        self._is_theirs = False
        self._lock = threads.allocate_lock()
        self._forks = 0
        self._armed = False
        self._set: Callable[..., Any] = _nothing
        self._cancel: Callable[..., Any] = _nothing

    def watch(self, registry: PatchRegistry) -> None:
        """See when the job sets the timer or cancels it."""
        known = "faulthandler" in sys.modules
        self._is_theirs = _may_be_set()
        import faulthandler

        self._set, self._cancel = (without_us(getattr(faulthandler, name)) for name in _NAMES)
        registry.apply_all([(Target("faulthandler", name), self) for name in _NAMES], aliases=known)
        _timers[:] = [self]

    def before(self, call: Call) -> None:
        """Keep off from here, if the job sets its timer."""
        if call.target.qualname == _NAMES[0]:
            self._is_theirs = True
            if self._lock.acquire(timeout=_FOR_LOCK):  # The watcher's thread is not setting ours at this moment.
                self._lock.release()
        self._armed = False

    def after(self, call: Call, result: Any) -> None:
        """Be free to set ours again, once the job has cancelled its own."""
        if call.target.qualname == _NAMES[1]:
            self._is_theirs = False

    def arm(self, file: TextFile, seconds: float) -> None:
        """Set the timer to this many seconds from now, in place of what we have set before."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if not self._is_theirs and not self._forks and file.is_there():
                self._set(seconds, file=file.fd)
                self._armed = True
        finally:
            self._lock.release()

    def disarm(self) -> None:
        """Take our timer away."""
        if self._armed and not self._is_theirs:
            self._armed = False
            self._cancel()

    def before_fork(self) -> None:
        """Take our timer away, and set none until the fork is over."""
        self._forks += 1
        if self._lock.acquire(timeout=_FOR_LOCK):
            self._lock.release()
        self.disarm()

    def after_fork(self) -> None:
        """The parent goes on; the watcher's thread sets the timer again in time."""
        self._forks = max(0, self._forks - 1)

    def fall_silent(self) -> None:
        """In the child of a fork there is no timer."""
        self._lock, self._forks, self._armed = threads.allocate_lock(), 0, False


_timers: List[Timer] = []


def _nothing(*_: Any, **__: Any) -> None:
    """Stand for a function of faulthandler's that is not there."""


def _may_be_set() -> bool:
    """Tell whether somebody may have set the timer already."""
    if "faulthandler" not in sys.modules:
        return False
    try:
        return len(os.listdir("/proc/self/task")) > threading.active_count()
    except ours(OSError):
        return True


def _each(step: Callable[[Timer], None]) -> None:
    for timer in _timers:
        with suppress(Exception):
            step(timer)


os.register_at_fork(before=lambda: _each(Timer.before_fork), after_in_parent=lambda: _each(Timer.after_fork))
