"""The Python stacks of all threads, read without importing, waiting or touching a source file."""

import sys
import threading
from types import FrameType
from typing import List, Optional

from ddp_probe.facts.call_site import PROBE, module_of, site, within
from ddp_probe.schema import Site, ThreadStack

_OUTER, _INNER = 24, 40
_DEEP = 10_000
_THREADS = 64


def thread_stacks(without: int = 0) -> List[ThreadStack]:
    """Return the stack of each thread, the main one first, without frames of the probe; `without` is the ident of a thread to leave out."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    main = threading.main_thread().ident
    frames = sorted(sys._current_frames().items(), key=lambda found: (found[0] != main, found[0]))
    return [
        ThreadStack(name=names.get(ident) or "thread-%d" % ident, main=ident == main, frames=_sites(frame))
        for ident, frame in frames[:_THREADS]
        if ident != without
    ]


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
