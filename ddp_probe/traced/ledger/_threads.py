"""What each thread is inside of.

It is kept in words, which an exception of a signal handler may leave wrong; the stack, which is never wrong, decides.
"""

import threading
from types import CodeType, FrameType
from typing import Dict, List, Optional

from ddp_probe.shared import ledger_schema as schema

CALL = 0
"""What an outermost call of torch.distributed is among the frames; a phase is its code."""


class LedgerThread:
    """One thread: the index of its outermost open call, how many calls that one has made, and how long the thread has been in calls altogether."""

    __slots__ = ("flags", "inner", "latest", "outer", "waited")

    def __init__(self) -> None:
        self.flags = 0 if threading.current_thread() is threading.main_thread() else schema.SIDE_THREAD
        self.inner = 0
        self.outer = 0
        self.latest = 0  # where its latest record is, in words
        self.waited = 0


class Here(threading.local):
    """The thread that asks."""

    def __init__(self) -> None:
        self.thread = LedgerThread()


class Frames:
    """The code whose frames are there as long as a call or a phase is open."""

    def __init__(self) -> None:
        self._kinds: Dict[int, int] = {}  # by id(code)
        self._kept: List[CodeType] = []  # so that no other code gets its id

    def know(self, code: Optional[CodeType], kind: Optional[int]) -> None:
        """Take note of what the frames of a code stand for."""
        if code is not None and kind is not None:
            self._kept.append(code)
            self._kinds[id(code)] = kind

    def around(self, frame: Optional[FrameType], kind: int, most: int = 1) -> int:
        """Return how many frames from this one outwards are of this kind, up to a number."""
        found = 0
        while frame is not None and found < most:
            found += self._kinds.get(id(frame.f_code)) == kind
            frame = frame.f_back
        return found
