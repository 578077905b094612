"""The ledgers of other processes of this host, read from outside; a launcher holds its ranks', and writes those of the killed into their files."""

import json
import os
import resource
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from ddp_probe.shared import ledger_codec as codec
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared import settings
from ddp_probe.shared.ours import ours, suppress
from ddp_probe.traced.facts.birth import ancestors, is_alive, is_paused
from ddp_probe.traced.hangs.places import Whereabouts, place, stood
from ddp_probe.traced.record.ledger_memory import MEMORY

_LINK = "/memfd:%s" % MEMORY
_STANDS = 1_000_000_000
"""Nanoseconds without a movement, after which a process should have written its file itself."""
_ROOM = 256
"""A launcher that may open fewer files than this and those that it holds is left alone."""
_HEADER, _SIZE = codec.HEADER, codec.PLACES.end
_BEAT, _BEAT_AT = _HEADER.single("beat"), _HEADER.offset("beat")
_SAFELY = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

_Ident = Tuple[int, int]


def is_held() -> bool:
    """Tell whether a launcher above this process holds the memory of its ranks."""
    pid = settings.get(settings.HOLDER)
    return pid.isascii() and pid.isdigit() and int(pid) in ancestors(os.getpid())[1:]


class _Memory(NamedTuple):
    fd: int
    ident: _Ident  # Of the memory: the program may have closed the descriptor, and be using its number for another file.
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
        data = self.read(path, _SIZE, 0)
        if memory is not None and len(data) == _SIZE and time.monotonic_ns() - _moved(data) > _STANDS:
            with suppress(OSError):
                _write(path, memory.of_file, data)

    def save(self, path: str) -> None:
        """Write into the file what a process had written that is no more, and let go of its memory."""
        memory = self._held.get(path)
        data = self.read(path, _SIZE, 0)
        self._held[path] = None
        with suppress(OSError):
            if memory is not None and len(data) == _SIZE:
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
        file = os.open(path, os.O_RDONLY | _SAFELY)
        try:
            wanted, of_file = _who(os.pread(file, _HEADER.size, 0)), _ident(file)
        finally:
            os.close(file)
        fds = [_opened(os.path.join(folder, name)) for name in os.listdir(folder)]
    except ours(OSError):  # It is gone, or of another user.
        return None
    memory = None
    for fd in fds:
        if fd >= 0 and memory is None and wanted and _who(os.pread(fd, _HEADER.size, 0)) == wanted:
            memory = _Memory(fd, _ident(fd), of_file)
        elif fd >= 0:
            os.close(fd)
    return memory


def _opened(link: str) -> int:
    """Open what a descriptor of another process stands for, if it is a ledger's memory; the process may have closed it meanwhile."""
    try:
        return os.open(link, os.O_RDONLY | os.O_CLOEXEC) if os.readlink(link).startswith(_LINK) else -1
    except ours(OSError):
        return -1


def _write(path: str, ident: _Ident, data: bytes) -> None:
    """Write the whole file if it differs, unless a person has put another in its place."""
    fd = os.open(path, os.O_RDWR | _SAFELY)
    try:
        if _ident(fd) == ident and _apart_from_beat(os.pread(fd, len(data), 0)) != _apart_from_beat(data):
            os.pwrite(fd, data, 0)
    finally:
        os.close(fd)


def _apart_from_beat(data: bytes) -> Tuple[bytes, bytes]:
    """Return what differs only if the process has moved: a watcher that has nothing to write beats as well."""
    return data[:_BEAT_AT], data[_BEAT_AT + _BEAT.size :]


def _moved(data: bytes) -> int:
    return _HEADER.read_field(data, 0, "moved_ns") or _HEADER.read_field(data, 0, "mono_ns")


def _ident(fd: int) -> _Ident:
    seen = os.fstat(fd)
    return seen.st_dev, seen.st_ino


def _who(data: bytes) -> Tuple[int, ...]:
    """Return what tells one process's ledger from another's."""
    if len(data) < _HEADER.size:
        return ()
    head = _HEADER.read(data)
    return head["pid"], head["born"], head["mono_ns"]


# The ledgers of other processes of this host, read from outside: the word that says when each has moved last, and no more than that while they move.
#
# A file is opened for each reading and not kept: a map of it would kill this process by SIGBUS if somebody cut the file short, and the job may close
# every descriptor that it finds.

_FIRST_LINE = 1 << 16
_SLACK = 1_000_000_000  # Nanoseconds; a rank reads its ledger and the clock one after another.
_LOOKS = 3
"""How often the folder is listed again after it has changed: two changes may have one time."""
_TIMES = codec.RowCodec([field for field in schema.HEADER if field.name in ("mono_ns", "moved_ns")])
_TIMES_AT = _HEADER.offset("mono_ns")  # moved_ns follows it.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Owner(NamedTuple):
    """The process that a ledger belongs to, and the file."""

    path: str
    rank: int
    world_size: int
    pid: int
    born: int
    held: Optional[Held] = None

    def is_alive(self) -> bool:
        """Tell whether the process still runs."""
        return is_alive(self.pid, self.born)

    def moved(self) -> int:
        """Return when it has moved last, in nanoseconds of the monotonic clock; 0 if the file cannot be read."""
        data = self._read(_TIMES.size, _TIMES_AT)
        if len(data) < _TIMES.size:
            return 0
        return _TIMES.read_field(data, 0, "moved_ns") or _TIMES.read_field(data, 0, "mono_ns")

    def is_paused(self) -> bool:
        """Tell whether the kernel lets the process not run."""
        return is_paused(self.pid)

    def silence(self) -> float:
        """Return for how many seconds no thread of Python's has run in it, as far as that is known, else 0."""
        if self.pid == os.getpid():
            return 0.0
        times, beat = self._memory(_TIMES.size, _TIMES_AT), self._memory(_BEAT.size, _BEAT_AT)
        if len(times) < _TIMES.size or len(beat) < _BEAT.size or not any(beat):
            return 0.0
        woken = _TIMES.read_field(times, 0, "mono_ns") + (int(_BEAT.unpack(beat)[0]) + 1) * schema.BEAT_NS
        return max(0.0, (time.monotonic_ns() - woken) / 1e9)

    def _memory(self, count: int, at: int) -> bytes:
        """Return bytes as the process has them: those of a file that its launcher could not hold are older."""
        return self.held.read(self.path, count, at) if self.held is not None else _read(self.path, count, at)

    def place(self) -> Optional[Whereabouts]:
        """Return where the process stands; None if its ledger is not whole."""
        data, stacks = self.whole(), stood(self.path[: -len(schema.SUFFIX)] + ".jsonl")
        if not data:
            return None
        if stacks is not None and stacks.moved < self.moved() - _SLACK:
            stacks = None
        return place(data, stacks)

    def whole(self) -> bytes:
        """Return the file as it is now; empty if it is not whole."""
        data = self._read(_SIZE, 0)
        return data if len(data) == _SIZE else b""

    def _read(self, count: int, at: int) -> bytes:
        data = self.held.read(self.path, count, at) if self.held is not None else b""
        return data or _read(self.path, count, at)


class WithoutLedger(Owner):
    """A rank that has no ledger yet; the path is that of its log."""

    def moved(self) -> int:
        """Return since when its stack has stood; now, if it does not stand."""
        stacks = stood(self.path)
        return stacks.moved if stacks is not None and stacks.still else time.monotonic_ns()

    def place(self) -> Optional[Whereabouts]:
        """Return where its stack stands."""
        return place(b"", stood(self.path))

    def silence(self) -> float:
        """Return 0: it is not known."""
        return 0.0

    def whole(self) -> bytes:
        """Return an empty ledger."""
        return b""


class Others:
    """The ledgers of a run's folder whose processes run on this host."""

    def __init__(self, folder: str, host: str, counts: Callable[[int], bool], held: Optional[Held] = None) -> None:
        self.folder = folder
        self._host = host
        self._counts = counts  # Asked once for each process, by its number.
        self._changed = -1
        self._looks = 0
        self._held = held
        self._found: Dict[str, Optional[Owner]] = {}
        self._last: Optional[Owner] = None
        self.lowest = -1
        """The lowest rank of the folder, on any host."""

    def hold(self) -> None:
        """Take the memory of those that are new."""
        self._list()

    def save(self) -> None:
        """Write the files of those that cannot, or are no more."""
        for owner in self._owners():
            if owner.held is not None:
                owner.held.catch_up(owner.path) if owner.is_alive() else owner.held.save(owner.path)

    def newest(self, since: int) -> int:
        """Return when the latest of them has moved; any time after `since` stands for all later ones. 0 if there is none."""
        self._list()
        if self._last is not None:
            moved = self._last.moved()
            if moved > since:
                return moved
        newest, self._last = max(((owner.moved(), owner) for owner in self._owners()), default=(0, None))
        return newest or max((owner.moved() for owner in self._joining()), default=0)

    def alive(self) -> List[Tuple[Owner, int]]:
        """Return those whose process runs, by rank, each with the time when it has moved last."""
        now = [((_owner(owner.path) or owner)._replace(held=self._held), owner.moved()) for owner in self._owners() if owner.is_alive()]
        owners = now or [(owner, owner.moved()) for owner in self._joining()]
        return sorted(owners, key=lambda pair: pair[0].rank)

    def gone(self) -> List[int]:
        """Return the ranks of this host that have a log and whose process is no more."""
        running = {owner.rank: owner.is_alive() for owner in sorted(self._logged(), key=Owner.is_alive)}
        return sorted(rank for rank, runs in running.items() if not runs)

    def _joining(self) -> List[Owner]:
        """Return the ranks that have a log and run, if there is no ledger of any rank."""
        return [] if self.lowest >= 0 else [owner for owner in self._logged() if owner.is_alive() and self._counts(owner.pid)]

    def _logged(self) -> List[Owner]:
        """Return the ranks of this host that have a log."""
        try:
            names = [name for name in os.listdir(self.folder) if name.startswith("rank") and name.endswith(".jsonl")]
        except ours(OSError):
            return []
        own = [name for name in names if name.split(".")[1] == self._host]
        owners = [_without_ledger(os.path.join(self.folder, name)) for name in own]
        return [owner for owner in owners if owner is not None]

    def _owners(self) -> List[Owner]:
        return [owner for owner in self._found.values() if owner is not None]

    def _list(self) -> None:
        try:
            changed = os.stat(self.folder).st_mtime_ns
            if changed != self._changed:
                self._changed, self._looks = changed, _LOOKS
            if not self._looks:
                return
            self._looks -= 1
            names = os.listdir(self.folder)
        except ours(OSError):
            return
        ledgers = [name for name in names if name.startswith("rank") and name.endswith(schema.SUFFIX)]
        self.lowest = min([_number(name) for name in ledgers], default=-1)
        for name in ledgers:
            if name.split(".")[1] == self._host and name not in self._found:
                self._take(name)

    def _take(self, name: str) -> None:
        owner = _owner(os.path.join(self.folder, name))
        if owner is not None:  # Else its header is not there yet, or it is another version's.
            self._found[name] = owner._replace(held=self._held) if self._counts(owner.pid) else None
            if self._held is not None and self._found[name] is not None:
                self._held.take(owner.path, owner.pid)


def _owner(path: str) -> Optional[Owner]:
    data = _read(path, _HEADER.size, 0)
    if len(data) < _HEADER.size:
        return None
    row = _HEADER.read(data)
    known = (row["magic"], row["version"], row["byte_order"]) == (schema.MAGIC, schema.VERSION, schema.BYTE_ORDER)
    return Owner(path, _rank(path, row["rank"]), row["world_size"], row["pid"], row["born"]) if known else None


def _without_ledger(log: str) -> Optional[WithoutLedger]:
    try:
        head = json.loads(_read(log, _FIRST_LINE, 0).partition(b"\n")[0])
        return WithoutLedger(log, int(head["rank"]), int(head.get("world_size") or -1), int(head["pid"]), int(head["born"]))
    except ours(ValueError, TypeError, KeyError):
        return None


def _rank(path: str, written: int) -> int:
    """Return the rank in the file, else the rank in its name: a process may learn its rank after it has made the file."""
    return written if written >= 0 else _number(os.path.basename(path))


def _number(name: str) -> int:
    """Return the rank in a file's name."""
    number = name[len("rank") :].partition(".")[0]
    return int(number) if number.isascii() and number.isdigit() else -1


def _read(path: str, count: int, at: int) -> bytes:
    try:
        fd = os.open(path, _FLAGS)
        try:
            return os.pread(fd, count, at)
        finally:
            os.close(fd)
    except ours(OSError):
        return b""
