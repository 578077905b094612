"""Shares parts of work among this process and its children: whoever is free takes the next part, and results have the order of the parts.

This process takes part itself: what it does need not be sent. It takes what children have sent first, so that none of them waits for it.
"""

import contextlib
import fcntl
import os
import select
import struct
from typing import Callable, Dict, List, Optional, Sequence, TypeVar

T = TypeVar("T")
MOST = 1 << 12  # Parts: their numbers lie in a pipe, which holds four times as many.
_NUMBER = struct.Struct("<I")
_HEAD = struct.Struct("<IQ")  # A part's number and the size of what follows.
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ of Linux; fcntl names it from Python 3.10 on.
_PIPE = 1 << 20  # Bytes: a child goes on while this process is busy with its part.


def available() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def each(count: int, children: int, here: Callable[[int], T], there: Callable[[int], bytes], arrived: Callable[[bytes], T]) -> List[T]:
    """Return the result of each part: made by `here`, or by `there` in a child and `arrived` here. A part that a child does not send is made here."""
    results: Dict[int, T] = {}
    numbers = _numbers(count)
    streams: List[int] = []
    try:
        for _ in range(children):
            streams.append(_child(numbers, there, streams))
        _take(numbers, streams, here, arrived, results)
    finally:
        for stream in (numbers, *streams):
            os.close(stream)  # A child that still sends ends with that.
        for _ in streams:
            os.wait()
    return [results[number] if number in results else here(number) for number in range(count)]


def _take(numbers: int, streams: Sequence[int], here: Callable[[int], T], arrived: Callable[[bytes], T], results: Dict[int, T]) -> None:
    """Take what children send, and parts while there are some, until no child sends any more."""
    poll, sending, is_left = select.poll(), len(streams), True
    for stream in streams:
        poll.register(stream, select.POLLIN)
    while sending or is_left:
        ready = [stream for stream, _ in poll.poll(0 if is_left else None)]
        for stream in ready:
            head = _read(stream, _HEAD.size)
            number, size = _HEAD.unpack(head) if head else (0, 0)
            data = _read(stream, size) if head else None
            if data is None:
                poll.unregister(stream)
                sending -= 1
            else:
                results[number] = arrived(data)
        if is_left and not ready:
            number = _next(numbers)
            is_left = number is not None
            if number is not None:
                results[number] = here(number)


def _numbers(count: int) -> int:
    """Return a pipe from which each reader takes the number of the next part."""
    end, begin = os.pipe()
    os.set_blocking(begin, False)
    with contextlib.suppress(BlockingIOError):  # A pipe may be smaller than usual; parts that nobody takes are made at the end.
        os.write(begin, b"".join(map(_NUMBER.pack, range(min(count, MOST)))))
    os.close(begin)
    return end


def _next(numbers: int) -> Optional[int]:
    """Return the number of a part that nobody has taken. The kernel gives each reader of a pipe all bytes that it asks for, or none."""
    data = os.read(numbers, _NUMBER.size)
    return int(_NUMBER.unpack(data)[0]) if data else None


def _child(numbers: int, there: Callable[[int], bytes], others: Sequence[int]) -> int:
    """Start a child that makes parts and sends them; return where they arrive."""
    end, begin = os.pipe()
    with contextlib.suppress(OSError):  # The total size of a user's pipes is limited; a small pipe is slower.
        fcntl.fcntl(begin, _SET_PIPE_SIZE, _PIPE)
    if os.fork():
        os.close(begin)
        return end
    try:
        for stream in (end, *others):
            os.close(stream)
        number = _next(numbers)
        while number is not None:
            data = there(number)
            _write(begin, _HEAD.pack(number, len(data)) + data)
            number = _next(numbers)
    finally:
        os._exit(0)  # Nothing of the parent may run here; what is missing is made there.


def _write(stream: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(stream, left) :]


def _read(stream: int, size: int) -> Optional[bytes]:
    """Return this many bytes, or None if the child has ended before it sent them."""
    parts: List[bytes] = []
    while size:
        parts.append(os.read(stream, min(size, _PIPE)))
        if not parts[-1]:
            return None
        size -= len(parts[-1])
    return b"".join(parts)
