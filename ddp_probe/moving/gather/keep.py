"""The folder in which rank 0 keeps what has arrived. A file has its final name only once it is whole; half of one waits to be continued."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import threading
from typing import Any, Dict, List, NamedTuple, Sequence

import msgspec

from ddp_probe.moving.gather.messages import Have
from ddp_probe.reading import gathered
from ddp_probe.reading.gathered import Gathered, GatheredHost
from ddp_probe.shared.errors import ProbeError, UnusableError
from ddp_probe.shared.regular_files import open_descriptor
from ddp_probe.shared.whole_file import whole_file
from ddp_probe.wording.text import say
from ddp_probe.wording.unwritable import UnwritableError
from ddp_probe.wording.words import quoted

_PART = ".part"
_FOLD = ".fold"
_ANOTHER_DISK = "Name a folder on another disk: --into DIR."
_PIECE = 1 << 20
_NOT_ENDED = "gather was ended before all hosts had come to their end"
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_Digest = Any  # hashlib's objects have no public type on Python 3.8.


class Keep:
    """The folder, which belongs to one gather at a time."""

    def __init__(self, folder: str, run: str) -> None:
        self.folder = folder
        self._lock, self._changed = threading.Lock(), False
        self._in_use: Dict[str, List[str]] = {}  # The names of files that this gather has given to hosts, to their logs.
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            self._own = _owned(folder)
        except OSError as exc:
            raise UnwritableError(folder, exc, _ANOTHER_DISK) from exc
        try:
            self._known = _opened(folder, run)
            self._save([_NOT_ENDED])
        except BaseException as exc:
            os.close(self._own)
            if isinstance(exc, OSError):
                raise UnwritableError(folder, exc, _ANOTHER_DISK) from exc
            raise

    def name_for(self, host: str, logs: Sequence[str]) -> str:
        """Return the name of a host's files, which begins with the host's name: the name from last time, recognised by its logs, or a new one."""
        with self._lock:
            mine = set(logs)
            same_logs = [kept.file for kept in self._known.hosts if mine.intersection(kept.logs)]
            before = next((file for file in same_logs if file not in self._in_use), "")
            taken = {*self._in_use, *(kept.file for kept in self._known.hosts)}
            name, number = host, 1
            while not before and name in taken:
                number += 1
                name = "%s.%d" % (host, number)
            self._in_use[before or name] = list(logs)
            self._known.hosts = [kept for kept in self._known.hosts if kept.file != before]
            self._changed = True
            self._known.hosts.append(GatheredHost(before or name, host, list(logs)))
            return before or name

    def fold_of(self, name: str) -> str:
        """Return the path of a host's fold."""
        return os.path.join(self.folder, name + _FOLD)

    def log_of(self, name: str, log: str) -> str:
        """Return the path of a file of a host's run; its name was accepted."""
        return os.path.join(self.folder, "logs", name, *log.split("/"))

    def folds(self) -> List[str]:
        """Return the names of the folds that are here, of earlier gathers too."""
        return sorted(name for name in os.listdir(self.folder) if name.endswith(_FOLD))

    def save(self) -> None:
        """Write which host has which files, if that has changed: a gather that is killed leaves it for the next one."""
        if self._changed:
            with contextlib.suppress(OSError):  # said at the end
                self._save([_NOT_ENDED])

    def close(self, lacking: List[str]) -> str:
        """Write the result; return why that failed, or an empty string."""
        try:
            self._save(lacking)
        except OSError as exc:
            return exc.strerror or str(exc)
        finally:
            os.close(self._own)
        return ""

    def _save(self, lacking: List[str]) -> None:
        with self._lock:
            self._known.lacking, self._changed = lacking, False
            data = msgspec.json.format(msgspec.json.encode(self._known, enc_hook=str), indent=1)
        with whole_file(os.path.join(self.folder, gathered.NAME), 0o600) as file:
            file.write(data)


def _owned(folder: str) -> int:
    """Return a descriptor that holds the folder for this process."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise UnusableError(
            what=say("{folder} is in use.", folder=folder),
            why="Another gather writes into it.",
            what_to_do="Wait for it, or name another folder: --into DIR.",
        ) from None
    except OSError:  # A file system without locks: two gathers at a time are the user's to avoid.
        pass
    return file


def _opened(folder: str, run: str) -> Gathered:
    """Return what an earlier gather has left here; refuse a folder that is not gather's, or is of another run."""
    what_to_do = say("Name another folder: --into DIR.")
    try:
        earlier = gathered.read(folder)
    except FileNotFoundError:
        if [name for name in os.listdir(folder) if not name.startswith(gathered.NAME)]:
            raise UnusableError(
                what=say("{folder} holds other files.", folder=folder),
                why="It was not made by gather.",
                what_to_do=what_to_do,
            ) from None
        return Gathered(gathered.VERSION, run)
    except ValueError as exc:
        why = say("Its {file} is not valid: {reason}.", file=gathered.NAME, reason=quoted(exc))
        raise UnusableError(what=say("{folder} cannot be continued.", folder=folder), why=why, what_to_do=what_to_do) from exc
    if earlier.run != run:
        raise UnusableError(
            what=say("{folder} holds another run.", folder=folder),
            why=say("It is of {run}, not of {asked}.", run=earlier.run, asked=run),
            what_to_do=what_to_do,
        )
    return earlier


class _Before(NamedTuple):
    """What is here of a file already."""

    path: str
    size: int
    digest: _Digest


class KeptFile:
    """A file that is arriving: it continues what is here, and is moved into place once its digest is right."""

    def __init__(self, path: str) -> None:
        self._path, self._part = path, path + _PART
        self._before = _before(self._part) or _before(path) or _Before("", 0, hashlib.sha256())
        self._digest: _Digest = None
        self._file = -1
        self.size = 0  # Bytes that are here.
        self.fault = ""  # Why it could not be kept.
        self.is_damaged = False  # All of it arrived, but it is not what its host has.

    def have(self) -> Have:
        """Return what is here of it."""
        return Have(self._before.size, self._before.digest.hexdigest() if self._before.size else "")

    def begin(self, at: int) -> None:
        """Begin at a byte: the first one, or the one after those that are here."""
        if at not in (0, self._before.size):
            raise ValueError(say("it continues a file at byte {at}", at=at))
        self.size, self._digest = at, (self._before.digest if at else hashlib.sha256()).copy()

    def add(self, piece: bytes) -> None:
        """Write a piece. Once the disk is full the rest passes by, and what is here waits for the next gather."""
        if self.fault:
            return
        try:
            if self._file < 0:
                self._open()
            view = memoryview(piece)
            while view:
                count = os.write(self._file, view)
                self.size, view = self.size + count, view[count:]
            self._digest.update(piece)
        except OSError as exc:
            self.fault = exc.strerror or str(exc)

    def _open(self) -> None:
        """Open the partial file; a whole file that has grown is continued in a copy."""
        os.makedirs(os.path.dirname(self._part), mode=0o700, exist_ok=True)
        if self.size and self._before.path == self._path:
            shutil.copyfile(self._path, self._part)
        self._file = os.open(self._part, _OPEN | (0 if self.size else os.O_TRUNC), 0o600)
        os.lseek(self._file, self.size, os.SEEK_SET)

    def end(self, sha256: str) -> None:
        """Put the file in its place, unless its digest differs: then it has to be sent again."""
        if self.fault or (self._file < 0 and self._before.path == self._path and self.size == self._before.size):
            return
        if self._digest.hexdigest() != sha256:
            self.fault, self.is_damaged = "its sha256 differs from the one on its host", True
            with contextlib.suppress(OSError):
                os.unlink(self._part)
            return
        try:
            if self._file < 0:
                self._open()
            os.replace(self._part, self._path)
        except OSError as exc:
            self.fault = exc.strerror or str(exc)

    def close(self) -> None:
        """Close it; half of it stays."""
        if self._file >= 0:
            os.close(self._file)


def _before(path: str) -> "_Before | None":
    """Return what is at a path, with its digest."""
    try:
        file = open_descriptor(path, os.O_NOFOLLOW)
    except OSError:
        return None
    digest, size = hashlib.sha256(), 0
    with os.fdopen(file, "rb") as stream:
        for piece in iter(lambda: stream.read(_PIECE), b""):
            digest.update(piece)
            size += len(piece)
    return _Before(path, size, digest)


def nothing_kept(folder: str, because: str) -> ProbeError:
    """Return the error for a gather that received nothing."""
    return UnusableError(
        what=say("No fold has arrived at {folder}.", folder=folder),
        why=because,
        what_to_do="Start gather on all hosts of the job, with the same DDP_PROBE_DIR as the job.",
    )
