"""A file beside the log to which faulthandler writes: opened here, checked before each use, and removed if it is empty.

faulthandler is C and writes when no Python can run, so its text is masked afterwards: when the watcher's thread runs again, and at the end.
"""

import fcntl
import os

from ddp_probe.shared.ours import ours, suppress
from ddp_probe.traced.record.files import few_descriptors, umask
from ddp_probe.traced.record.render import through

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_MOST = 1 << 24
_LOWEST = 64
"""The descriptor's lowest number: a job that opens and closes files of its own by number uses small ones."""


class TextFile:
    """One open file, known by its place on the disk: the job may close every descriptor that it finds."""

    def __init__(self, path: str) -> None:
        self.path, self.fd = path, -1
        self._ident = 0, 0
        if few_descriptors():
            return
        low = os.open(path, _FLAGS, 0o666 & ~umask(os.path.dirname(path)))
        try:
            self.fd = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _LOWEST)
        finally:
            os.close(low)
        seen = os.fstat(self.fd)
        self._ident = seen.st_dev, seen.st_ino

    def is_there(self) -> bool:
        """Tell whether the descriptor still leads to this file."""
        try:
            seen = os.fstat(self.fd)
        except ours(OSError):
            return False
        return (seen.st_dev, seen.st_ino) == self._ident

    def size(self) -> int:
        """Return how much has been written to it; 0 if the descriptor leads elsewhere."""
        return os.fstat(self.fd).st_size if self.is_there() else 0

    def mask(self) -> None:
        """Mask what has been written; text without a secret is left as it is."""
        size = self.size()
        data = os.pread(self.fd, size, 0) if 0 < size <= _MOST else b""
        lines = data.decode("utf-8", "surrogateescape").splitlines(keepends=True)
        masked = "".join(map(through, lines)).encode("utf-8", "surrogateescape")
        if masked != data:
            os.ftruncate(self.fd, 0)
            os.write(self.fd, masked)

    def close(self, remove_empty: bool = True) -> None:
        """Let go of the file."""
        if not self.is_there():
            return
        if remove_empty and os.fstat(self.fd).st_size == 0:
            with suppress(OSError):
                os.unlink(self.path)
        if remove_empty:  # A forked child leaves its parent's file alone.
            with suppress(OSError):
                self.mask()
        os.close(self.fd)
