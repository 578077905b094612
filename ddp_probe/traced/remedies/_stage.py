"""A folder beside a path, in which a file is written until it is whole and can replace the path in one step."""

import errno
import os
import shutil
import stat
from typing import Callable, Iterator, Optional, Tuple, Union

from ddp_probe.shared.ours import ours, suppress
from ddp_probe.traced.remedies import _leftovers

# The errors of a file system that cannot flush; any other failure to flush means that the save is not on the disk.
_CANNOT_FLUSH = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EROFS)


class Stage:
    """The folder into which a save writes first."""

    def __init__(self, path: str, folder: str, says: Callable[[str], None]) -> None:
        self.path = path
        self.folder = folder
        # Under the same name: torch puts a file's name into the archive.
        self.file = os.path.join(folder, os.path.basename(path))
        self.says = says

    @classmethod
    def beside(cls, path: str, says: Callable[[str], None]) -> "Union[Stage, str]":
        """Return a stage, or why there is none: empty if the save will fail by itself. says gets what the stage could not do later."""
        because = _in_the_way(path)
        if because is not None:
            return because
        folder = os.path.join(os.path.dirname(path), _leftovers.name())
        try:
            os.mkdir(folder, 0o700)
        except ours(FileNotFoundError, NotADirectoryError):
            return ""
        except ours(OSError) as exc:
            return "%s does not take a second file: %s" % (os.path.dirname(path), exc.strerror)
        _leftovers.sweep(folder)
        return cls(path, folder, says)

    def commit(self) -> None:
        """Flush the file to the disk and rename it to the path. If the path cannot be replaced, write over it, as the job would."""
        old = status(self.path)
        if old is not None:
            _keep(self.path, old, self.file)
        _flush(self.file)
        try:
            os.replace(self.file, self.path)
        except ours(OSError) as exc:  # A file that is a mount of its own, another user's file in a folder such as /tmp, no rename at all.
            self.says("%s cannot be replaced, and was written over: %s" % (self.path, exc.strerror))
            shutil.copyfile(self.file, self.path)
            _flush(self.path)
        with suppress(OSError):  # Some file systems cannot flush a folder.
            _flush(os.path.dirname(self.path))
        self.clear()

    def clear(self) -> None:
        """Remove the folder and everything in it."""
        _leftovers.remove(self.folder)


def status(path: str) -> Optional[os.stat_result]:
    """Return the status of what is at a path, or None."""
    try:
        return os.stat(path)
    except ours(OSError):
        return None


def _in_the_way(path: str) -> Optional[str]:
    """Return why a new file must not replace the one at the path; None if it may."""
    old = status(path)
    if old is None:
        return "" if os.path.islink(path) else None  # Links in a circle.
    if not stat.S_ISREG(old.st_mode):
        return "%s is not a regular file" % path
    if old.st_nlink > 1:
        return "%s has several names (hard links), and a new file would have only one of them" % path
    if not os.access(path, os.W_OK):
        return ""
    if old.st_uid != os.geteuid() and os.geteuid():
        return "%s belongs to another user, and a new file would belong to this one" % path
    return None


def _keep(path: str, old: os.stat_result, new: str) -> None:
    """Give a new file the owner, the permissions and the access list of the one it replaces, if the file system has them."""
    with suppress(OSError):
        os.chown(new, old.st_uid, old.st_gid)
    for name, value in _attributes(path):
        with suppress(OSError):
            os.setxattr(new, name, value)
    with suppress(OSError):
        os.chmod(new, stat.S_IMODE(old.st_mode))


def _attributes(path: str) -> Iterator[Tuple[str, bytes]]:
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):
        for name in os.listxattr(path):
            yield name, os.getxattr(path, name)


def _flush(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    except ours(OSError) as exc:
        if exc.errno not in _CANNOT_FLUSH:
            raise
    finally:
        os.close(fd)
