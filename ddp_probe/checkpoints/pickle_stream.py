"""A pickle as a stream of opcodes, in bounded memory, and what it describes, as data: no class is looked up and nothing is called.

Lists and tuples are Python's own.
"""

import io
from typing import Any, List, NamedTuple

from ddp_probe.checkpoints.checkpoint_file import FileRange


class Global(NamedTuple):
    """A class or function by name."""

    module: str
    name: str

    @property
    def path(self) -> str:
        """Return the dotted name."""
        return "%s.%s" % (self.module, self.name)


class Mapping:
    """A dictionary, as the pairs that were set; a key may be anything."""

    __slots__ = ("pairs",)

    def __init__(self) -> None:
        self.pairs: List[Any] = []  # Key, value, key, value.

    def get(self, name: str) -> Any:
        """Return the value of a text key; the last one counts."""
        value = None
        for index in range(0, len(self.pairs) - 1, 2):
            if type(self.pairs[index]) is str and self.pairs[index] == name:
                value = self.pairs[index + 1]
        return value


class PickledCall:
    """What calling a function, or making an object of a class, would return, with what is put into it afterwards."""

    __slots__ = ("arguments", "function", "items", "pairs", "state")

    def __init__(self, function: Any, arguments: Any) -> None:
        self.function = function
        self.arguments = arguments
        self.state: Any = None
        self.items: List[Any] = []
        self.pairs: List[Any] = []


class Persistent:
    """What the program that loads the file finds by itself, such as a tensor's storage."""

    __slots__ = ("identity",)

    def __init__(self, identity: Any) -> None:
        self.identity = identity


class PickledSet:
    """A set or a frozen set."""

    __slots__ = ("items",)

    def __init__(self, items: List[Any]) -> None:
        self.items = items


class Blob(NamedTuple):
    """Bytes, or a text or number too long to keep."""

    length: int


# Feeds a pickle to pickletools.genops from an offset of a file: long arguments are skipped, not read.

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
