"""The ledger as its own process writes it: in memory that nobody can cut short, and from there, a few times a second, in its file.

A mapped file that somebody cuts short, by `> file`, logrotate or rsync, kills whoever touches it next by SIGBUS. So the map is not of the file: it is
of a descriptor without a name that is sealed against shrinking. A record is a store into it and no system call. `flush` copies the pages that have
changed into the file. If the process is killed between two of them, its launcher, which holds the descriptor too, writes the rest (hangs/others.py).

Without a launcher of ours nobody would: then the file is mapped. It is allocated and not sparse, since a page without room on the disk is SIGBUS too.
"""

import contextlib
import fcntl
import json
import mmap
import os
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared import threads
from ddp_probe.shared.ledger_codec import HEADER, NEW, PLACES, text_entry
from ddp_probe.shared.ours import ours, suppress
from ddp_probe.traced.record.files import few_descriptors, umask
from ddp_probe.traced.record.render import render, through

_TRIES = 100
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_MOST_CHARACTERS = 2_000
_PATIENCE = 0.2
_NONE = 0
_MOST_BEATS = (1 << 32) - 1
_PAGE = 4096
_SEALS = 1033, 0x1 | 0x2 | 0x4  # F_ADD_SEALS: F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW. Python 3.8 names them if its libc did.
_MADE = HEADER.word("mono_ns")
MEMORY = "ddp_probe_ledger"
"""The name of the memory, by which /proc/PID/fd tells it from others."""

_Ident = Tuple[int, int]


class Author(NamedTuple):
    """Whose ledger it is."""

    rank: int
    world_size: int
    born: int
    boot: str
    host: str


class LedgerFile:
    """One ledger. `map` takes whole records, `words` single words of eight bytes."""

    def __init__(self, path: str, mapped: mmap.mmap, ident: _Ident, of_file: _Ident, author: Author) -> None:
        self.is_file = ident == of_file
        """The file itself is mapped: there is nothing to flush."""
        self.path = path
        self.map = mapped
        self.words: Any = memoryview(mapped).cast("B").cast("Q")
        self._ident = ident
        self._fds = _descriptors_of(ident)
        self._of_file = of_file
        self._in_file = bytes(PLACES.end)
        self._flushed: Tuple[int, ...] = ()
        self._flushing = threads.allocate_lock()
        self.before_flush: Callable[[], None] = _nothing
        """Writes into the memory what is kept elsewhere until then."""
        self.before_look: Callable[[], None] = _nothing
        """Brings the records up to date, before it is asked whether anything has changed."""
        self._texts: Dict[Tuple[int, str], int] = {}
        self._lock = threads.RLock()
        self._writing = False
        self._put_header(author)
        self.text(schema.HOST, author.host)

    def _put_header(self, author: Author) -> None:
        head = {
            **NEW,
            "rank": author.rank,
            "world_size": author.world_size,
            "pid": os.getpid(),
            "born": author.born,
            "boot": _uuid(author.boot),
            "wall_ns": time.time_ns(),
            "mono_ns": time.monotonic_ns(),
        }
        HEADER.write(self.map, 0, head)

    def flush(self) -> None:
        """Copy what has changed into the file, if it is still the file that was made: a person may have moved or replaced it."""
        self.before_look()
        marks = tuple(self.words[HEADER.word(name)] for name in ("moved_ns", "text_used", "closed_ns", "text_lost", "rank"))
        flushing = self._flushing
        if not flushing.acquire(blocking=False):  # By another thread, or below a signal handler: what this flush leaves out, the next one takes.
            return
        try:
            if marks == self._flushed and (self.is_file or os.stat(self.path).st_size >= PLACES.end):
                return
            self.before_flush()
            if self.is_file:
                self._flushed = marks
                return
            with _opened(self.path) as (fd, seen):
                if (seen.st_dev, seen.st_ino) != self._of_file:
                    return
                if seen.st_size < PLACES.end:
                    self._in_file = bytes(PLACES.end)
                now = bytes(self.map)
                for begin, end in _changed(self._in_file, now):
                    os.pwrite(fd, now[begin:end], begin)
                self._in_file, self._flushed = now, marks
        except ours(OSError):  # The disk is full, or the file is not ours to write any more: the memory has it all.
            self._in_file = bytes(PLACES.end)
        finally:
            flushing.release()

    def beat(self, runs: bool = True) -> None:
        """Note that a thread of this process runs, or ends: whoever reads the memory sees since when none runs that should."""
        since = (time.monotonic_ns() - self.words[_MADE]) // schema.BEAT_NS
        HEADER.write_field(self.map, 0, "beat", max(1, since & _MOST_BEATS) if runs else 0)

    def bind(self, rank: Optional[int], world_size: Optional[int]) -> None:
        """Say who the process is, once that is known."""
        for name, value in (("rank", rank), ("world_size", world_size)):
            if value is not None:
                HEADER.write_field(self.map, 0, name, value)

    def text(self, kind: int, text: str) -> int:
        """Return the number of a text, writing it if it is new; 0 if there is no room, or if a signal handler asks while one is being written."""
        number = self._texts.get((kind, text))
        return number if number is not None else self._write(kind, text)

    def text_of(self, kind: int, number: int) -> str:
        """Return the text that has this number; empty if there is none."""
        texts = [text for (known, text), found in list(self._texts.items()) if (known, found) == (kind, number)]
        return texts[0] if texts else ""

    def _write(self, kind: int, text: str) -> int:
        lock = self._lock
        if not lock.acquire(timeout=_PATIENCE):
            self._lock, self._writing = threads.RLock(), False  # Its owner was interrupted between taking it and giving it back.
            return _NONE
        if self._writing:
            lock.release()
            return _NONE
        try:
            self._writing = True
            return self._append(kind, text)
        finally:
            self._writing = False
            lock.release()

    def _append(self, kind: int, text: str) -> int:
        data = _masked(kind, text)[:_MOST_CHARACTERS].encode("utf-8", "replace")
        used = int(self.words[HEADER.word("text_used")])
        number = len(self._texts) + 1
        entry = text_entry(number, kind, data)
        if used + len(entry) > schema.TEXT_BYTES:
            self.words[HEADER.word("text_lost")] += 1
            return _NONE
        at = schema.HEADER_BYTES + used
        self.map[at : at + len(entry)] = entry
        self.words[HEADER.word("text_used")] = used + len(entry)  # Last: an entry is there as a whole or not at all.
        self._texts[(kind, text)] = number
        return number

    def close(self, said: bool = True) -> None:
        """Let go of the map; a forked child says nothing in its parent's file."""
        if said:
            self.words[HEADER.word("closed_ns")] = time.monotonic_ns()
            self.flush()
        self.words.release()
        # The job may have closed every descriptor it found, and be using the number of ours for a file of its own.
        if self._fds == _descriptors_of(self._ident, self._fds):
            with suppress(BufferError):
                self.map.close()


def _masked(kind: int, text: str) -> str:
    """Return a text as it may leave the process; each of its parts stays in its place."""
    if kind == schema.GROUP:
        return render(json.loads(text)).decode()
    return "\n".join([through(line) for line in text.split("\n")])


def _nothing() -> None:
    """Stand for what has nothing to write."""


def create(base: str, author: Author, in_memory: bool = True) -> LedgerFile:
    """Make ``base.ledger``, or ``base.1.ledger`` and so on if the name is taken."""
    mode = 0o666 & ~umask(os.path.dirname(base))
    for number in range(_TRIES):
        path = base + (".%d" % number if number else "") + schema.SUFFIX
        with suppress(FileExistsError):
            fd = os.open(path, _CREATE, mode)
            break
    else:
        raise FileExistsError(path)
    try:
        os.posix_fallocate(fd, 0, PLACES.end)
        seen = os.fstat(fd)
        mapped, ident = _memory() if in_memory or few_descriptors() else (_mapped(fd), (seen.st_dev, seen.st_ino))
    except ours(Exception):
        os.unlink(path)
        raise
    finally:
        os.close(fd)
    file = LedgerFile(path, mapped, ident, (seen.st_dev, seen.st_ino), author)
    file.flush()
    return file


def _memory() -> Tuple[mmap.mmap, _Ident]:
    """Return memory that only this process writes to."""
    if few_descriptors():
        return mmap.mmap(-1, PLACES.end), (0, 0)
    try:
        fd = os.memfd_create(MEMORY, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except ours(OSError, AttributeError):  # A kernel or a sandbox without it: what was written since the last flush dies with the process.
        return mmap.mmap(-1, PLACES.end), (0, 0)
    try:
        os.ftruncate(fd, PLACES.end)
        fcntl.fcntl(fd, *_SEALS)
        seen = os.fstat(fd)
        return _mapped(fd), (seen.st_dev, seen.st_ino)
    finally:
        os.close(fd)


def _mapped(fd: int) -> mmap.mmap:
    """Map it; mmap keeps a descriptor of its own, which must not become 0 to 2: the job would print into it."""
    with contextlib.ExitStack() as low:
        taken = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        while taken <= 2:
            low.callback(os.close, taken)
            taken = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.close(taken)
        return mmap.mmap(fd, PLACES.end)


@contextlib.contextmanager
def _opened(path: str) -> "Iterator[Tuple[int, os.stat_result]]":
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        yield fd, os.fstat(fd)
    finally:
        os.close(fd)


def _changed(before: bytes, now: bytes) -> Iterator[Tuple[int, int]]:
    """Yield the runs of pages that differ."""
    begin = -1
    for at in range(0, len(now), _PAGE):
        same = now[at : at + _PAGE] == before[at : at + _PAGE]
        if begin < 0 and not same:
            begin = at
        elif begin >= 0 and same:
            yield begin, at
            begin = -1
    if begin >= 0:
        yield begin, len(now)


def _descriptors_of(ident: _Ident, among: Optional[List[int]] = None) -> List[int]:
    """Return the descriptors that lead to this file."""
    descriptors = []
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")] if among is None else among
    except ours(OSError, ValueError):
        return []
    for fd in numbers:
        with suppress(OSError):
            seen = os.fstat(fd)
            if (seen.st_dev, seen.st_ino) == ident:
                descriptors.append(fd)
    return descriptors


def _uuid(boot: str) -> bytes:
    try:
        return bytes.fromhex(boot.replace("-", ""))[:16]
    except ours(ValueError):
        return b""
