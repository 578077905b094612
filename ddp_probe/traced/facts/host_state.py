"""What the kernel knows of this process and of its control group: a dozen small files of /proc and /sys, and no subprocess."""

import os
import re
from typing import Dict, List, Optional

from ddp_probe.shared.ours import ours
from ddp_probe.shared.schema import HostState

_PROC, _SYS = "/proc", "/sys/fs/cgroup"
_MOST = 8192
_UNLIMITED = 1 << 60  # Version 1 writes a number near 2**63 for no limit.
_FILES = {"current": "memory.current", "limit": "memory.max", "events": "memory.events", "parts": "memory.stat"}
_FILES_V1 = {"current": "memory.usage_in_bytes", "limit": "memory.limit_in_bytes", "events": "memory.oom_control", "parts": "memory.stat"}
_TAKEN, _TAKEN_V1 = (re.compile(rb"^%s (\d+)$" % names, re.M) for names in (rb"(?:anon|shmem)", rb"total_(?:rss|shmem)"))


class HostReader:
    """Reads the same files again and again; it looks for those of the control group once."""

    def __init__(self, proc: str = _PROC, sys: str = _SYS) -> None:
        self._proc = proc
        self._group = _control_group(proc, sys)
        self._shm = "/dev/shm"  # noqa: S108  # looked at, never written to

    def state(self) -> HostState:
        """Return what is known now; what cannot be read stays unset."""
        status = _fields(_read(self._proc + "/self/status"))
        times = os.times()
        state = HostState(
            rss=_kilobytes(status, b"VmRSS"),
            rss_peak=_kilobytes(status, b"VmHWM"),
            anonymous=_kilobytes(status, b"RssAnon"),
            threads=_number(status.get(b"Threads")),
            files=_count(self._proc + "/self/fd"),
            cpu_seconds=round(times.user + times.system, 2),
            load=_load(_read(self._proc + "/loadavg")),
        )
        if self._group:
            state.memory = _number(_read(self._group["current"]))
            limit = _number(_read(self._group["limit"]))
            state.memory_limit = limit if limit is not None and limit < _UNLIMITED else None
            state.memory_taken = _taken(_read(self._group["parts"])) if state.memory_limit else None
            state.oom_kills = _number(_fields(_read(self._group["events"])).get(b"oom_kill"))
        state.shm_free, state.shm_size = _room(self._shm)
        return state


def _control_group(proc: str, sys: str) -> Dict[str, str]:
    """Return the files of the control group that limits this process's memory; a container sees its own at the top."""
    for line in _read(proc + "/self/cgroup").split(b"\n"):
        _, _, rest = line.decode("utf-8", "surrogateescape").partition(":")
        controllers, _, path = rest.partition(":")
        if not path or (controllers and "memory" not in controllers.split(",")):
            continue
        names, top = (_FILES_V1, sys + "/memory") if controllers else (_FILES, sys)
        for folder in (top + path.rstrip("/"), top):
            if os.path.exists(folder + "/" + names["current"]):
                return {key: folder + "/" + name for key, name in names.items()}
    return {}


def _read(path: str) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except ours(OSError):
        return b""
    try:
        return os.read(file, _MOST)
    except ours(OSError):
        return b""
    finally:
        os.close(file)


def _fields(text: bytes) -> Dict[bytes, bytes]:
    """Return the words of lines such as `VmRSS:  1234 kB` and `oom_kill 0`, by the first."""
    found = {}
    for line in text.split(b"\n"):
        words: List[bytes] = line.split(None, 2)
        if len(words) > 1:
            found[words[0].rstrip(b":")] = words[1]
    return found


def _number(word: Optional[bytes]) -> Optional[int]:
    try:
        return int(word) if word else None
    except ours(ValueError):  # A limit of "max".
        return None


def _taken(parts: bytes) -> Optional[int]:
    """Return what no cache of files is: that of processes, and shared memory."""
    found = (_TAKEN_V1 if b"total_rss" in parts else _TAKEN).findall(parts)
    return sum(map(int, found)) if found else None


def _kilobytes(fields: Dict[bytes, bytes], name: bytes) -> Optional[int]:
    found = _number(fields.get(name))
    return None if found is None else found << 10


def _count(folder: str) -> Optional[int]:
    try:
        return len(os.listdir(folder)) - 1  # The one that lists them.
    except ours(OSError):
        return None


def _load(text: bytes) -> Optional[float]:
    try:
        return float(text.split(None, 1)[0])
    except ours(IndexError, ValueError):
        return None


def _room(folder: str) -> "tuple[Optional[int], Optional[int]]":
    try:
        found = os.statvfs(folder)
    except ours(OSError):
        return None, None
    return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
