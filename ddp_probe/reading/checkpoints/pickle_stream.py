"""Feeds a pickle to pickletools.genops from an offset of a file, in bounded memory: long arguments are skipped, not read."""

import io
from typing import Any

from ddp_probe.reading.checkpoints.source import FileRange

_LONG = 1 << 16  # Maximum bytes of an argument that is read.


class Skipped(bytes):
    """Bytes that were not read: empty, but with the length that pickletools insists on."""

    length = 0

    def __len__(self) -> int:
        return self.length


class _Raw(io.RawIOBase):
    def __init__(self, source: FileRange, at: int) -> None:
        self._source, self._at = source, at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._source.read(self._at, len(buffer))
        self._source.tally.add(len(data))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset if whence == 0 else offset + (self._at if whence == 1 else self._source.size)
        return self._at

    def tell(self) -> int:
        return self._at


class PickleStream(io.BufferedReader):
    """What genops reads from; its position is the offset in the source."""

    def __init__(self, source: FileRange, at: int = 0) -> None:
        super().__init__(_Raw(source, at), 1 << 16)
        self.short = False  # More was asked for than there is.
        self._size = source.size
        source.tally.expect(source.size - at)

    @property
    def ended(self) -> bool:
        """Tell whether everything was read."""
        return self.short or self.tell() >= self._size

    def has(self, length: int) -> bool:
        """Tell whether this many bytes are left."""
        return self.tell() + length <= self._size

    def read(self, size: Any = -1) -> bytes:
        """Return the bytes; Skipped if there are more than an argument of interest has."""
        if 0 <= size <= _LONG:
            return super().read(size)
        at = self.tell()
        if size < 0 or at + size > self._size:
            self.short = True
            return b""
        self.seek(at + size)
        skipped = Skipped()
        skipped.length = size
        return skipped

    def readline(self, _size: Any = -1) -> bytes:
        """Return a line; a longer one is cut, which genops reports as malformed."""
        return super().readline(_LONG)
