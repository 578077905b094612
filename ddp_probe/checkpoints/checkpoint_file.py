"""How a checkpoint is opened and read, at offsets and never beyond what is asked for, and which processes have it open for writing.

Only regular files are opened: a pipe would wait, and a device has no end.
"""

import os
import stat
from typing import Callable, Optional, Tuple

from ddp_probe.checkpoints.judged import UnknownError
from ddp_probe.shared.regular_files import open_descriptor
from ddp_probe.wording.text import say

Progress = Callable[[int, int], None]  # (bytes read, bytes in all)

_PART = 1 << 20


class FileRange:
    """An open file, or a part of one: a distributed checkpoint's file holds several archives."""

    def __init__(self, fd: int, start: int, size: int, tally: "Optional[ReadMeter]" = None) -> None:
        self._fd = fd
        self._start = start
        self.size = size
        self.tally = tally or ReadMeter()

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes at an offset: fewer only at the end that the file had when it was opened."""
        length = max(min(length, self.size - offset), 0) if offset >= 0 else 0
        parts, got = [], 0
        while got < length:
            part = os.pread(self._fd, min(length - got, 1 << 26), self._start + offset + got)
            if not part:
                raise UnknownError(say("The file became shorter while it was read."), say("Run this again once nobody writes it."))
            parts.append(part)
            got += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def blocks(self, offset: int, length: int) -> "Blocks":
        """Return an iterator over the bytes of a range, in parts."""
        return Blocks(self, offset, min(length, max(self.size - offset, 0)))

    def part(self, offset: int, size: int) -> "FileRange":
        """Return a range of this file as a separate source."""
        return FileRange(self._fd, self._start + offset, max(min(size, self.size - offset), 0), self.tally)


class ReadMeter:
    """How many bytes were read of those that will be, for the progress on a terminal."""

    def __init__(self, everything: int = 0, progress: Optional[Progress] = None) -> None:
        self.everything = everything
        self.done = 0
        self._fixed = everything > 0
        self._progress = progress

    def expect(self, length: int) -> None:
        """Say that this many bytes will be read, unless it was known from the start how many there are."""
        if not self._fixed:
            self.everything += length

    def add(self, length: int) -> None:
        """Count bytes that were read."""
        self.done += length
        if self._progress is not None:
            self._progress(min(self.done, self.everything), self.everything)


class Blocks:
    """Reads a range in parts, and counts them."""

    def __init__(self, source: FileRange, offset: int, length: int) -> None:
        self._source, self._at, self._end = source, offset, offset + length
        source.tally.expect(length)

    def __iter__(self) -> "Blocks":
        return self

    def __next__(self) -> bytes:
        if self._at >= self._end:
            raise StopIteration
        part = self._source.read(self._at, min(_PART, self._end - self._at))
        self._at += len(part)
        self._source.tally.add(len(part))
        return part


def open_file(path: str) -> Tuple[int, os.stat_result]:
    """Open a regular file; its descriptor and what fstat says."""
    _insist(os.stat(path))
    fd = open_descriptor(path)
    return fd, os.fstat(fd)


def _insist(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnknownError(say("Not a regular file."), say("Name the file itself."))
