"""When a process was started, by whom, and by which command, according to the kernel; available on Linux only."""

import os
from typing import List, Optional, Tuple

from ddp_probe.shared.masks import mask_argv
from ddp_probe.shared.ours import ours

_STATE, _PARENT, _START_TIME = 0, 1, 19  # Among the fields after the name in brackets, which may contain spaces and brackets.
_TIMES = slice(11, 15)
_GONE = (b"Z", b"X", b"x")
_FREEZERS = (b"do_freezer_trap", b"__refrigerator")  # Of control groups, versions 2 and 1.
_GENERATIONS = 64
_MOST = 1 << 16


def born() -> Optional[int]:
    """Return the start time of this process in clock ticks since boot."""
    try:
        return int(_fields("self")[_START_TIME])
    except ours(IndexError, ValueError):
        return None


def is_alive(pid: int, started: int) -> bool:
    """Tell whether the process with this number runs, and was started then; 0 for a start that is not known."""
    try:
        fields = _fields(str(pid))
        return fields[_STATE] not in _GONE and started in (0, int(fields[_START_TIME]))
    except ours(IndexError, ValueError):
        return False


def is_paused(pid: int) -> bool:
    """Tell whether the kernel lets a process not run: a signal or a debugger has stopped it, or its control group is frozen."""
    state = _fields(str(pid))[:1]
    if state in ([b"T"], [b"t"]) or _read("/proc/%d/wchan" % pid) in _FREEZERS:
        return True
    return state == [b"D"] and _is_frozen(pid)  # Linux 6.1 and later freeze a thread where it waits.


def _is_frozen(pid: int) -> bool:
    for line in _read("/proc/%d/cgroup" % pid).splitlines():
        _, kinds, path = (*line.split(b":", 2), b"", b"")[:3]
        group = os.fsdecode(path)
        if kinds == b"freezer" and _read("/sys/fs/cgroup/freezer" + group + "/freezer.state").startswith(b"FROZEN"):
            return True
        if not kinds and b"frozen 1" in _read("/sys/fs/cgroup" + group + "/cgroup.events"):
            return True
    return False


def cpu_of(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    return sum(map(int, _fields(str(pid))[_TIMES][:2])) / os.sysconf("SC_CLK_TCK")


def waits_in(pid: int) -> Tuple[str, str]:
    """Return the kernel's letter for a process, and the kernel's function in which its main thread waits; empty if they are not known."""
    state, place = b"".join(_fields(str(pid))[:1]).decode(), _read("/proc/%d/wchan" % pid).decode("ascii", "replace")
    return state, "" if place == "0" else place[:64]


def ancestors(pid: int) -> List[int]:
    """Return a process, its parent, and so on upwards."""
    pids: List[int] = []
    while pid > 0 and len(pids) < _GENERATIONS:
        pids.append(pid)
        try:
            pid = int(_fields(str(pid))[_PARENT])
        except ours(IndexError, ValueError):
            break
    return pids


def cpu_of_children() -> float:
    """Return the CPU seconds of the processes that this one has started, and of those that they have: of all that ended and that run."""
    ticks, started = 0, _children(os.getpid())
    for pid in started:  # It grows.
        ticks += sum(map(int, _fields(str(pid))[_TIMES]))
        if len(started) < _GENERATIONS:
            started += _children(pid)
    ended = os.times()
    return ended.children_user + ended.children_system + ticks / os.sysconf("SC_CLK_TCK")


def _children(pid: int) -> List[int]:
    """Return the processes that each thread of one has started."""
    try:
        threads = os.listdir("/proc/%d/task" % pid)
    except ours(OSError):
        return []
    children: List[int] = []
    for thread in threads:
        children.extend(map(int, _read("/proc/%d/task/%s/children" % (pid, thread)).split()))
    return children


def boot() -> str:
    """Return the kernel's ID of this boot."""
    return _read("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()[:64]


def parent() -> List[str]:
    """Return the command line of the parent process, secrets masked."""
    words = _read("/proc/%d/cmdline" % os.getppid()).decode("utf-8", "replace").rstrip("\0")
    return mask_argv(words.split("\0")) if words else []


def _fields(pid: str) -> List[bytes]:
    return _read("/proc/%s/stat" % pid).rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST)
    except ours(OSError):
        return b""
