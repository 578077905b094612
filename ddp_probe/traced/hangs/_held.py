"""The memory of the ranks' ledgers, held by their launcher: it is read while they live, and written into their files if they were killed.

Only a launcher holds it: in a rank it would be a descriptor that the job does not expect. It tells its ranks so by a variable of the environment,
which nobody can delete as one can a file. This cannot lie in traced/record/ledger.py, which knows of one ledger alone.
"""

import os
import resource
import sys
import time
from typing import Dict, NamedTuple, Optional, Tuple

from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared import settings
from ddp_probe.shared.ours import ours, suppress
from ddp_probe.traced.facts.birth import ancestors
from ddp_probe.traced.record.ledger import MEMORY, size

_LINK = "/memfd:%s" % MEMORY
_STANDS = 1_000_000_000
"""Nanoseconds without a movement, after which a process should have written its file itself."""
_ROOM = 256
"""A launcher that may open fewer files than this and those that it holds is left alone."""
_HEADER = schema.layout(schema.HEADER)
_NAMES = [field.name for field in schema.HEADER]
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

_Ident = Tuple[int, int]


def is_held() -> bool:
    """Tell whether a launcher above this process holds the memory of its ranks."""
    pid = settings.get(settings.HOLDER)
    return pid.isascii() and pid.isdigit() and int(pid) in ancestors(os.getpid())[1:]


class _Memory(NamedTuple):
    fd: int
    ident: _Ident  # Of the memory: the program may have closed the descriptor, and be using its number for a file of its own.
    of_file: _Ident


class Held:
    """One descriptor for each rank of this host, from when its ledger was first seen."""

    def __init__(self) -> None:
        self._held: Dict[str, Optional[_Memory]] = {}

    def take(self, path: str, pid: int) -> None:
        """Hold the memory of a process whose ledger has this path; a second time changes nothing."""
        if path not in self._held:
            self._held[path] = _taken(pid, path) if len(self._held) + _ROOM <= resource.getrlimit(resource.RLIMIT_NOFILE)[0] else None

    def read(self, path: str, count: int, at: int) -> bytes:
        """Return bytes of a ledger as they are this moment; empty if its memory is not held."""
        memory = self._held.get(path)
        try:
            return os.pread(memory.fd, count, at) if memory is not None and _ident(memory.fd) == memory.ident else b""
        except ours(OSError):
            return b""

    def catch_up(self, path: str) -> None:
        """Write into the file what a process has written that cannot do so itself, since it is stopped, or native code holds the GIL."""
        memory = self._held.get(path)
        data = self.read(path, size(), 0)
        if memory is not None and len(data) == size() and time.monotonic_ns() - _moved(data) > _STANDS:
            with suppress(OSError):
                _write(path, memory.of_file, data)

    def save(self, path: str) -> None:
        """Write into the file what a process had written that is no more, and let go of its memory."""
        memory = self._held.get(path)
        data = self.read(path, size(), 0)
        self._held[path] = None
        with suppress(OSError):
            if memory is not None and len(data) == size():
                os.close(memory.fd)
                _write(path, memory.of_file, data)

    def save_all(self) -> None:
        """The launcher ends: do so for all."""
        for path in list(self._held):
            self.save(path)

    def forget(self) -> None:
        """In the child of a fork: close what the parent holds."""
        for memory in self._held.values():
            with suppress(OSError):
                if memory is not None and _ident(memory.fd) == memory.ident:
                    os.close(memory.fd)
        self._held.clear()


def _taken(pid: int, path: str) -> Optional[_Memory]:
    """Return the memory among a process's descriptors that is of this ledger."""
    folder = "/proc/%d/fd" % pid
    try:
        file = os.open(path, os.O_RDONLY | _FLAGS)
        try:
            wanted, of_file = _who(os.pread(file, _HEADER.size, 0)), _ident(file)
        finally:
            os.close(file)
        fds = [_opened(os.path.join(folder, name)) for name in os.listdir(folder)]
    except ours(OSError):  # It is gone, or of another user.
        return None
    found = None
    for fd in fds:
        if fd >= 0 and found is None and wanted and _who(os.pread(fd, _HEADER.size, 0)) == wanted:
            found = _Memory(fd, _ident(fd), of_file)
        elif fd >= 0:
            os.close(fd)
    return found


def _opened(link: str) -> int:
    """Open what a descriptor of another process stands for, if it is a ledger's memory; the process may have closed it meanwhile."""
    try:
        return os.open(link, os.O_RDONLY | os.O_CLOEXEC) if os.readlink(link).startswith(_LINK) else -1
    except ours(OSError):
        return -1


def _write(path: str, ident: _Ident, data: bytes) -> None:
    """Write the whole file if it differs, unless a person has put another in its place."""
    fd = os.open(path, os.O_RDWR | _FLAGS)
    try:
        if _ident(fd) == ident and os.pread(fd, len(data), 0) != data:
            os.pwrite(fd, data, 0)
    finally:
        os.close(fd)


def _moved(data: bytes) -> int:
    moved, made = (
        int.from_bytes(data[at : at + 8], sys.byteorder) for at in (schema.offset(schema.HEADER, name) for name in ("moved_ns", "mono_ns"))
    )
    return moved or made


def _ident(fd: int) -> _Ident:
    seen = os.fstat(fd)
    return seen.st_dev, seen.st_ino


def _who(data: bytes) -> Tuple[int, ...]:
    """Return what tells one process's ledger from another's."""
    if len(data) < _HEADER.size:
        return ()
    head = dict(zip(_NAMES, _HEADER.unpack_from(data)))
    return head["pid"], head["born"], head["mono_ns"]
