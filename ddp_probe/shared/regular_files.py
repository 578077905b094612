"""Opens what is read from outside of a traced process: regular files alone, and never waiting.

A pipe with a log's name would hold the reader until somebody writes to it, and a device may never end. What is at a path is looked at once it is
open: it may be replaced between two looks. tests/packaging/test_one_door.py finds each open() that goes around it.
"""

import errno
import io
import os
import stat
from typing import BinaryIO, TextIO, Union

from ddp_probe.shared.ours import ours

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_Path = Union[str, "os.PathLike[str]"]
NOT_REGULAR = "Not a regular file"


def open_descriptor(path: _Path, flags: int = 0) -> int:
    """Open a regular file for reading; OSError for anything else, also for a name that no file can have."""
    try:
        fd = os.open(path, _FLAGS | flags)
    except ours(ValueError) as exc:  # a null character
        raise OSError(errno.EINVAL, "No file has such a name", os.fspath(path)) from exc
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, NOT_REGULAR, os.fspath(path))
    except BaseException:
        os.close(fd)
        raise
    return fd


def open_bytes(path: _Path, flags: int = 0) -> BinaryIO:
    """Open a regular file to read its bytes."""
    return os.fdopen(open_descriptor(path, flags), "rb")


def open_unbuffered(path: _Path) -> io.FileIO:
    """Open a regular file to read some bytes at some places."""
    return io.FileIO(open_descriptor(path), "rb")


def open_text(path: _Path, errors: str = "strict") -> TextIO:
    """Open a regular file to read its text."""
    return os.fdopen(open_descriptor(path), encoding="utf-8", errors=errors)
