"""Finds the stacks of each rank: the answer to a request, the last ones of a suspected hang, or the text that faulthandler has written."""

import os
import re
from typing import Iterator, List, NamedTuple, Optional, Sequence, Union

from ddp_probe.reading import held_files
from ddp_probe.reading._decode import decode
from ddp_probe.reading.faulthandler_text import threads as threads_of_text
from ddp_probe.reading.stamp import seconds
from ddp_probe.shared import schema

_EVENTS = (b'"event":"hang.suspected"', b'"event":"stacks"')
_OVER = b'"event":"hang.over"'
_NAME = re.compile(r"rank(\d+)\.")
_LARGEST = 1 << 28
_WithThreads = Union[schema.HangSuspected, schema.Stacks]

ANSWER, HANG, DUMP = "an answer to a request", "a suspected hang", "faulthandler"


class RankStacks(NamedTuple):
    """The stacks of one rank at one time."""

    rank: int
    threads: List[schema.ThreadStack]
    when: float  # Seconds since 1970 by the clock of its host.
    source: str  # ANSWER, HANG or DUMP.
    moved_on: bool = False  # The rank has said later that the hang is over.


def main_frames(threads: Sequence[schema.ThreadStack]) -> List[schema.Site]:
    """Return the stack of the main thread; empty if it is not among them."""
    return next((thread.frames for thread in threads if thread.main), [])


def answer(lines: bytes, file: str, request: int) -> Optional[RankStacks]:
    """Return a rank's answer to a request among the lines that were added to its log."""
    for line in reversed(lines.split(b"\n")[:-1]):
        event = _event(line) if _EVENTS[1] in line else None
        if isinstance(event, schema.Stacks) and event.request == request:
            return _of(event, file, moved_on=False)
    return None


def recorded(log: str) -> Optional[RankStacks]:
    """Return the latest stacks that a rank has left, in its log or in faulthandler's text next to it."""
    found = [each for each in (_logged(log), dumped(log)) if each is not None]
    return max(found, key=lambda each: each.when, default=None)


def dump_of(log: str) -> str:
    """Return the file beside a log to which faulthandler writes."""
    return log[: -len(".jsonl")] + ".stacks"


def dumped(log: str) -> Optional[RankStacks]:
    """Return the last stacks that faulthandler has written beside a log."""
    path = dump_of(log)
    found = threads_of_text(_bytes(path).decode("utf-8", "replace"))
    return RankStacks(rank_of(log), found, os.stat(held_files.place(path)).st_mtime, DUMP) if found else None


def rank_of(file: str) -> int:
    """Return the rank in a file's name, or -1."""
    found = _NAME.match(os.path.basename(file))
    return int(found[1]) if found else -1


def _logged(log: str) -> Optional[RankStacks]:
    data = _bytes(log)
    for at in _backwards(data):
        end = data.find(b"\n", at)
        event = _event(data[data.rfind(b"\n", 0, at) + 1 : end]) if end >= 0 else None  # The last line may be torn.
        if event is not None and event.threads:
            return _of(event, log, moved_on=data.rfind(_OVER) > at)
    return None


def _backwards(data: bytes) -> Iterator[int]:
    """Yield where events with stacks are, the latest first."""
    end = len(data)
    while True:
        end = max(data.rfind(mark, 0, end) for mark in _EVENTS)
        if end < 0:
            return
        yield end


def _event(line: bytes) -> Optional[_WithThreads]:
    event = decode(line).event
    return event if isinstance(event, (schema.HangSuspected, schema.Stacks)) else None


def _of(event: _WithThreads, file: str, *, moved_on: bool) -> RankStacks:
    source = ANSWER if isinstance(event, schema.Stacks) else HANG
    rank = event.rank if event.rank is not None else rank_of(file)
    return RankStacks(rank, event.threads, seconds(event.ts) or 0.0, source, moved_on and source == HANG)


def _bytes(path: str) -> bytes:
    try:
        with open(held_files.place(path), "rb") as stream:
            return stream.read(_LARGEST)
    except OSError:
        return b""
