"""The Python stacks of all threads, read without importing, waiting or touching a source file."""

import sys
import threading
import time
from types import FrameType
from typing import List, Optional, Tuple

from ddp_probe.shared import threads
from ddp_probe.shared.schema import Site, ThreadStack
from ddp_probe.traced.facts.birth import cpu_of_children
from ddp_probe.traced.facts.call_site import PROBE, module_of, site, within

_OUTER, _INNER = 24, 40
_DEEP = 10_000
_THREADS = 64


def thread_stacks(without: int = 0) -> List[ThreadStack]:
    """Return the stack of each thread, the main one first, without frames of the probe; `without` is the ident of a thread to leave out."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found, main = sys._current_frames(), _main()
    frames = sorted(found.items(), key=lambda found: (found[0] != main, found[0]))
    return [
        ThreadStack(name=names.get(ident) or "thread-%d" % ident, main=ident == main, frames=_sites(frame))
        for ident, frame in frames[:_THREADS]
        if ident != without
    ]


def _main() -> int:
    """Return the ident of the main thread; gevent gives it another one, which no frame has."""
    ident = threading.main_thread().ident or 0
    return ident if ident in sys._current_frames() else threads.FIRST


class MainThread:
    """Since when the main thread has stood at one line, and its callers at theirs, as far as looks from time to time can tell."""

    def __init__(self) -> None:
        self.since_ns = time.monotonic_ns()
        self._lines: Tuple[Tuple[int, int], ...] = ()
        self._was_elsewhere = False
        self._busy = self._children = 0.0

    def look(self) -> None:
        """Look once. One look at other lines is forgiven: who polls for something leaves its sleep for a moment."""
        lines = _lines(sys._current_frames().get(_main()))
        is_elsewhere = lines != self._lines
        if not is_elsewhere or (self._lines and not self._was_elsewhere):
            self._was_elsewhere = is_elsewhere
            return
        self._lines, self._was_elsewhere = lines, False
        self.since_ns, self._busy, self._children = time.monotonic_ns(), time.process_time(), cpu_of_children()

    def is_busy(self) -> bool:
        """Tell whether the process has computed for most of the time since then."""
        return time.process_time() - self._busy > (time.monotonic_ns() - self.since_ns) / 2e9

    def children(self) -> float:
        """Return the CPU seconds of its child processes since then."""
        return max(0.0, round(cpu_of_children() - self._children, 2))


def _lines(frame: Optional[FrameType]) -> Tuple[Tuple[int, int], ...]:
    found: List[Tuple[int, int]] = []
    while frame is not None and len(found) < _DEEP:
        found.append((id(frame.f_code), frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def _sites(frame: Optional[FrameType]) -> List[Site]:
    """Return the frames, outermost first; of a deep stack those in the middle are left out: an import stands many frames below the job's line."""
    found: List[FrameType] = []
    while frame is not None and len(found) < _DEEP:
        if not within(module_of(frame), PROBE):
            found.append(frame)
        frame = frame.f_back
    if len(found) > _OUTER + _INNER:
        found[_INNER:-_OUTER] = []
    return [site(each.f_code, each.f_lineno) for each in reversed(found)]
