"""Writes a model's list of parameters once per distinct digest; ranks that race for it write the same bytes."""

import os
import time
from typing import Any, List

from ddp_probe.shared.ours import ours, suppress

from ._chain import rows_logger
from ._file import make_folder
from ._modes import umask

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Whole:
    """The end of the chain for one model: holds what has to be written at once, as its size decides whether there is room for it."""

    data = b""

    def write(self, data: bytes) -> None:
        """Take the rendered rows."""
        self.data = data


def lines(rows: List[Any]) -> bytes:
    """Return the rows as they go into the file."""
    whole = Whole()
    rows_logger(whole).write(rows)
    return whole.data


def is_name(digest: str) -> bool:
    """Tell whether a digest can be a file's name."""
    return bool(digest) and all(letter.isalnum() or letter in "-_" for letter in digest)


def exists(directory: str, digest: str) -> bool:
    """Tell whether some rank has written it already; a symlink of that name counts, and is left alone."""
    return os.path.lexists(os.path.join(directory, "models", digest + ".json"))


def write(directory: str, digest: str, data: bytes) -> None:
    """Write ``models/<digest>.json`` whole or not at all."""
    make_folder(os.path.join(directory, "models"))
    # Everything below goes through this descriptor, so that a models/ that is a symlink is refused, not followed.
    folder = os.open(os.path.join(directory, "models"), _FOLDER)
    try:
        _write_in(folder, digest + ".json", data, 0o666 & ~umask(directory))
    finally:
        os.close(folder)


def _write_in(folder: int, name: str, data: bytes, mode: int) -> None:
    draft = ".%s.%d.%x" % (name, os.getpid(), time.monotonic_ns())
    fd = os.open(draft, _CREATE, mode, dir_fd=folder)
    try:
        try:
            _write_all(fd, data)
        finally:
            os.close(fd)
        _publish(folder, draft, name)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)


def _publish(folder: int, draft: str, name: str) -> None:
    try:
        os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except ours(FileExistsError):
        return
    except ours(OSError):  # a file system without hard links; renaming replaces a symlink, it does not follow it
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
