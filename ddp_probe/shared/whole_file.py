"""Writes a file that is there as a whole or not at all, whenever it is read and the writer is ended."""

import contextlib
import os
from typing import BinaryIO, Iterator

from ddp_probe.shared.ours import ours, suppress

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def whole_file(path: str, mode: int = 0o666, *, replace: bool = True) -> Iterator[BinaryIO]:
    """Yield a draft beside the path, which takes its place if nothing is raised.

    A link of that name is replaced, and not followed.
    """
    draft = "%s.%s.part" % (path, os.urandom(4).hex())
    try:
        with os.fdopen(os.open(draft, _CREATE, mode), "wb") as file:
            yield file
        if replace:
            os.replace(draft, path)
        else:
            _put_beside(draft, path)
    finally:
        with suppress(OSError):
            os.unlink(draft)


def _put_beside(draft: str, path: str) -> None:
    """Give the draft its name unless something has it; FileExistsError then."""
    try:
        os.link(draft, path)
    except ours(FileExistsError):
        raise
    except ours(OSError):  # A file system without hard links.
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        os.rename(draft, path)
