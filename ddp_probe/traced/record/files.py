"""How files of a run are opened: made exclusively, never through a symlink, for the user alone by default, checked before each write."""

import errno
import fcntl
import os
import resource
import stat
from typing import Iterator, Optional, Tuple

from ddp_probe.shared import settings
from ddp_probe.shared.ours import ours, suppress

_OWNER, _GROUP = 0o077, 0o027
_FEW = 256


def few_descriptors() -> bool:
    """Tell whether this process may open so few files that it would miss those that we keep open: then we keep none."""
    return 0 <= resource.getrlimit(resource.RLIMIT_NOFILE)[0] < _FEW  # without a limit it is -1


def umask(directory: str) -> int:
    """Return what is taken from 0666 and 0777 for a file or folder in this place; the process's umask narrows it further."""
    asked = settings.get(settings.UMASK)
    if asked is not None:
        return int(asked)
    # A folder with the set-group-ID bit is shared by a group, and whoever set the bit meant its members to read what lies there.
    return _GROUP if _shared(directory) else _OWNER


def _shared(directory: str) -> bool:
    """Tell whether the nearest folder that is there belongs to a group; what is made in such a folder inherits the bit."""
    place = os.path.abspath(directory)
    while True:
        try:
            return bool(os.stat(place).st_mode & stat.S_ISGID)
        except ours(FileNotFoundError):
            parent = os.path.dirname(place)
        except ours(OSError):
            return False
        if parent == place:
            return False
        place = parent


# One append-only file that is ours alone: made exclusively, never through a symlink, checked before each write.

_TRIES = 100
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE, errno.ENXIO)  # The last for a pipe that nobody reads.
_APPEND = os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_CREATE = _APPEND | os.O_CREAT | os.O_EXCL


class OutOfRoomError(Exception):
    """The line would pass the limit."""


class LineFile:
    """The file of one process, the sink of its logger; ``write`` writes one line by one call."""

    numbers: Iterator[int] = iter(())

    def __init__(self, fd: int, path: str, room: int) -> None:
        seen = os.fstat(fd)
        self.fd = fd
        self.path = path
        self.room = room
        self.size = seen.st_size
        self.line_at: Optional[int] = None  # how long the file was before the line that is being written
        self._torn = False
        self._ident: Tuple[int, int] = (seen.st_dev, seen.st_ino)
        self._links = seen.st_nlink  # some file systems always answer 0

    def intact(self) -> bool:
        """Tell whether the descriptor is still this file and the file still has a name.

        The job may close every descriptor it finds, and its own file may then get our number.
        """
        try:
            seen = os.fstat(self.fd)
        except ours(OSError):
            return False
        self.size = seen.st_size
        return (seen.st_dev, seen.st_ino) == self._ident and seen.st_nlink >= self._links

    def write(self, line: bytes) -> int:
        """Write one line and return its length, or raise and leave nothing of it behind."""
        if self._torn:
            line = b"\n" + line
        if self.size + len(line) > self.room:
            raise OutOfRoomError
        self.line_at = self.size
        written = os.write(self.fd, line)
        self._torn = False
        if written < len(line):
            self._take_back(written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        self.size += written
        return written

    def landed(self) -> bool:
        """Tell whether the line whose writing was interrupted is in the file."""
        if self.line_at is None:
            return False
        with suppress(OSError):
            return os.fstat(self.fd).st_size > self.line_at
        return False

    def _take_back(self, written: int) -> None:
        """Cut a line that a full disk took half of, so that every line in the file is whole."""
        try:
            os.ftruncate(self.fd, os.fstat(self.fd).st_size - written)
        except ours(OSError):
            self._torn = True

    def reopened(self) -> Optional["LineFile"]:
        """Return this same file on a new descriptor, or None if its name is gone or belongs to another file now."""
        try:
            fd = _high(os.open(self.path, _APPEND))
        except ours(OSError) as exc:
            if exc.errno in _GONE:
                return None
            raise  # too many open files, say: the file is still there, and is tried again later
        again = LineFile(fd, self.path, self.room)
        if again._ident == self._ident:
            return again
        os.close(fd)
        return None

    def close(self) -> None:
        """Close the descriptor if it is still ours."""
        fd, self.fd = self.fd, -1
        with suppress(OSError):
            seen = os.fstat(fd)
            if (seen.st_dev, seen.st_ino) == self._ident:
                os.close(fd)


def create(directory: str, stem: str, room: int) -> LineFile:
    """Make ``stem.jsonl``, or ``stem.1.jsonl`` and so on where the name is taken."""
    make_folder(directory)
    name = stem.replace(os.sep, "_")
    for number in range(_TRIES):
        path = os.path.join(directory, name + (".%d" % number if number else "") + ".jsonl")
        try:
            return LineFile(_high(os.open(path, _CREATE, 0o666 & ~umask(directory))), path, room)
        except ours(FileExistsError):
            continue
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.path.join(directory, name + ".jsonl"))


def make_folder(directory: str) -> None:
    """Make a folder and its parents; os.makedirs would make the parents world-writable where the umask is 0."""
    missing = [directory]
    while not os.path.lexists(os.path.dirname(missing[-1])):
        parent = os.path.dirname(missing[-1])
        if parent in ("", missing[-1]):
            break
        missing.append(parent)
    for folder in reversed(missing):  # once each: /proc says "no such file" of a folder whose parent is there
        _make(folder)


def _make(folder: str) -> None:
    try:
        os.mkdir(folder, 0o777 & ~umask(folder))
    except ours(FileExistsError):
        if not stat.S_ISDIR(os.stat(folder).st_mode):
            raise


def _high(fd: int) -> int:
    """Move a descriptor out of 0 to 2: where the job has closed stdout, its prints would land in our file."""
    if fd > 2:
        return fd
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(fd)


# Beside the runs: a pointer to the newest one, and a note that keeps them out of version control.

_NAME = "latest"


def point_at(folder: str) -> None:
    """Let 'latest' point at this run's folder; what somebody else has put under that name stays."""
    root, run = os.path.split(folder)
    pointer = os.path.join(root, _NAME)
    if os.path.lexists(pointer) and not os.path.islink(pointer):
        return
    make_folder(root)
    _keep_out_of_git(root)
    temporary = "%s.%d.%s" % (pointer, os.getpid(), os.urandom(4).hex())  # hosts that share the folder have equal pids
    os.symlink(run, temporary)
    try:
        os.replace(temporary, pointer)
    except ours(OSError):  # another user's link, in a folder where only its owner may replace it: that one stays
        os.unlink(temporary)


def _keep_out_of_git(root: str) -> None:
    try:
        fd = os.open(os.path.join(root, ".gitignore"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 & ~umask(root))
    except ours(FileExistsError):
        return
    os.write(fd, b"*\n")
    os.close(fd)
