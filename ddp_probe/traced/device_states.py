"""Writes device.state: at the events of the probes that ask for it, from time to time, and at the end.

It is a line only if something has changed since the last one, so that a log of a week stays small. A failure, a hang and the end always have one.
No device is initialised, asked or waited for: the allocators have counted on the host.
"""

import os
import re
import time
from types import FunctionType
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ddp_probe.shared import schema, settings
from ddp_probe.shared.ours import ours
from ddp_probe.shared.schema import DeviceMemory, HostState
from ddp_probe.traced.facts.accelerator_state import initialised_runtimes
from ddp_probe.traced.patching.guard import guard
from ddp_probe.traced.session import Session

_CARDS = 16
_STATS = {
    "allocated": "allocated_bytes.all.current",
    "allocated_peak": "allocated_bytes.all.peak",
    "reserved": "reserved_bytes.all.current",
    "reserved_peak": "reserved_bytes.all.peak",
    "retries": "num_alloc_retries",
    "out_of_memory": "num_ooms",
}
_CALLS = {
    "allocated": "memory_allocated",
    "allocated_peak": "max_memory_allocated",
    "reserved": "memory_reserved",
    "reserved_peak": "max_memory_reserved",
}


def device_memory(current: str = "", *, ask: bool = True) -> Tuple[str, List[DeviceMemory]]:
    """Return the current device, and the memory of each device that this process has used.

    Which device is current is a matter of the thread: one of ours is not to ask, and takes what the job's was.
    """
    current = "" if ask else current
    memories: List[DeviceMemory] = []
    for device_type, held in initialised_runtimes():
        try:
            index = _whole(_call(held, "current_device")) if ask else _index(current, device_type)
            if index is not None and not current:
                current = "%s:%d" % (device_type, index)
            memories += _used(device_type, held, index)
        except ours(Exception):
            continue  # A vendor's module may fail here; the others are still worth a line.
    return current, memories


def _used(device_type: str, held: Dict[str, Any], current: Optional[int]) -> Iterator[DeviceMemory]:
    count = _whole(_call(held, "device_count")) or 0
    for index in range(min(count, _CARDS)):
        numbers = _counted(held, index)
        if index == current or any(numbers.values()):
            yield DeviceMemory(device="%s:%d" % (device_type, index), **numbers)


def _counted(held: Dict[str, Any], index: int) -> Dict[str, Optional[int]]:
    nested = _call(held, "memory_stats_as_nested_dict", index)  # memory_stats sorts two hundred names, which takes longer than all the rest.
    if nested:
        return {field: _whole(_at(nested, name)) for field, name in _STATS.items()}
    flat = _call(held, "memory_stats", index)
    if flat:
        return {field: _whole(flat.get(name)) for field, name in _STATS.items()}
    return {field: _whole(_call(held, name, index)) for field, name in _CALLS.items()}


def _index(device: str, device_type: str) -> Optional[int]:
    kind, _, number = device.partition(":")
    return int(number) if kind == device_type and number.isdigit() else None


def _at(nested: Any, name: str) -> Any:
    for part in name.split("."):
        nested = nested.get(part) if isinstance(nested, dict) else None
    return nested


def _call(held: Dict[str, Any], name: str, *arguments: int) -> Any:
    function: Optional[Callable[..., Any]] = held.get(name)
    return function(*arguments) if type(function) is FunctionType else None


def _whole(value: Any) -> Optional[int]:
    return value if type(value) is int else None


# What the kernel knows of this process and of its control group: a dozen small files of /proc and /sys, and no subprocess.

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
            state.oom_kills = self.oom_kills()
        state.shm_free, state.shm_size = _room(self._shm)
        return state

    def oom_kills(self) -> Optional[int]:
        """Return how many processes of the control group the kernel has killed for lack of memory."""
        return _number(_fields(_read(self._group["events"])).get(b"oom_kill")) if self._group else None


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
    values = {}
    for line in text.split(b"\n"):
        words: List[bytes] = line.split(None, 2)
        if len(words) > 1:
            values[words[0].rstrip(b":")] = words[1]
    return values


def _number(word: Optional[bytes]) -> Optional[int]:
    try:
        return int(word) if word else None
    except ours(ValueError):  # A limit of "max".
        return None


def _taken(parts: bytes) -> Optional[int]:
    """Return what no cache of files is: that of processes, and shared memory."""
    counts = (_TAKEN_V1 if b"total_rss" in parts else _TAKEN).findall(parts)
    return sum(map(int, counts)) if counts else None


def _kilobytes(fields: Dict[bytes, bytes], name: bytes) -> Optional[int]:
    kilobytes = _number(fields.get(name))
    return None if kilobytes is None else kilobytes << 10


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
        room = os.statvfs(folder)
    except ours(OSError):
        return None, None
    return room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize


_BYTES, _SHARE = 16 << 20, 0.01
"""A change of memory below either of them is none."""
_BYTES_BETWEEN, _SHARE_BETWEEN = 64 << 20, 0.05
"""The same where nothing else happens: in a long run each of these lines would otherwise be one of noise."""
_FIRST = 1.0
_GROWS = 2
_SIZES = ("allocated_peak", "reserved", "rss", "memory_taken", "shm_free")
_OURS = ("periodic", "hang")  # What the watcher's thread writes, in which no device has been chosen.
_COUNTS = ("retries", "out_of_memory", "oom_kills")


class DeviceStates:
    """What this process has last written of its devices and of its host."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._every: Optional[float] = settings.get(settings.STATE_EVERY)
        self._host: Optional[HostReader] = None
        self._last: Dict[str, int] = {}
        self._current = ""
        self._pause = _FIRST
        self._due = 0.0

    def note(self, when: str, always: bool = False) -> None:
        """Write a line, unless nothing has changed; none in a launcher, and none before the first event of a probe."""
        if self._every is not None and self._session.process.role.name != "launcher" and self._session.recorder.path is not None:
            guard.run("state", self._write, when, always)

    def _write(self, when: str, always: bool) -> None:
        event = self._event(when)
        now = _sizes(event)
        least = (_BYTES_BETWEEN, _SHARE_BETWEEN) if when == "periodic" else (_BYTES, _SHARE)
        if always or _differ(self._last, now, *least):
            self._last = now
            self._session.recorder.point(event)

    def look(self) -> None:
        """Be called about once a second: write a line if it is time, after 1, 2, 4 … seconds and then every DDP_PROBE_STATE_EVERY."""
        now = time.monotonic()
        if self._every is None or now < self._due:
            return
        first, self._due = not self._due, now + self._pause
        self._pause = min(self._pause * _GROWS, self._every)
        if not first:
            self.note("periodic")

    def _event(self, when: str) -> schema.DeviceState:
        if self._host is None:
            self._host = HostReader()
        current, devices = device_memory(self._current, ask=when not in _OURS)
        self._current = current
        step = self._session.collectives.stands().get("step")
        return schema.DeviceState(when=when, current=current, devices=devices, system=self._host.state(), step=step)


def _sizes(event: schema.DeviceState) -> Dict[str, int]:
    sizes = {}
    for place, part in (("", event.system), *((memory.device, memory) for memory in event.devices)):
        for name in (*_SIZES, *_COUNTS):
            value = getattr(part, name, None)
            if value is not None:
                sizes[place + " " + name] = value
    return sizes


def _differ(before: Dict[str, int], now: Dict[str, int], least: int, share: float) -> bool:
    """Tell whether a size has changed by that many bytes and by that share of it, or a count at all."""
    if before.keys() != now.keys():
        return True
    for name, value in now.items():
        change = abs(value - before[name])
        if name.endswith(_COUNTS) and change:
            return True
        if change > least and change > share * before[name]:
            return True
    return False
