"""What /proc tells of a process that is looked at: where it waits, its rights, memory, files, connections. Nothing is stopped, nobody is asked."""

import contextlib
import os
import re
import socket
import struct
from typing import Dict, List, Optional, Tuple

from ddp_probe.reading import proc_files
from ddp_probe.reading.proc_files import read, text
from ddp_probe.shared import accelerators
from ddp_probe.shared.masks import mask
from ddp_probe.shared.schema import HostState, OpenFile, OpenSocket

STOPPED = ("T", "t")
_CHECKPOINT = re.compile(r"\.(?:pt|pth|ckpt|bin|safetensors|tar|h5|npz|npy|distcp|lmdb|mdb|tfrecord|parquet)$|checkpoint|ckpt", re.IGNORECASE)
_TOP, _TOP_V1 = "/sys/fs/cgroup", "/sys/fs/cgroup/memory"
_GROUP = ("/memory.current", "/memory.max", "/memory.events", r"^(?:anon|shmem) (\d+)$")
_GROUP_V1 = ("/memory.usage_in_bytes", "/memory.limit_in_bytes", "/memory.oom_control", r"^total_(?:rss|shmem) (\d+)$")
_UNLIMITED = 1 << 60  # Version 1 writes a number near 2**63 for no limit.
_MOST_FILES, _MOST_SOCKETS, _MOST_CARDS, _MOST_CHILDREN = 32, 64, 32, 64
_ESTABLISHED, _ASKS = "01", "02"


def wchan(pid: int) -> str:
    """Return the kernel's function in which the main thread waits; empty if it is not known."""
    function = text("%d/wchan" % pid).strip()
    return "" if function == "0" else function


def switches(pid: int) -> Optional[int]:
    """Return how often the main thread has gone to sleep to wait for something."""
    count = _field("%d/task/%d/status" % (pid, pid), "voluntary_ctxt_switches")
    return int(count) if count.isdigit() else None


def privileges(pid: object = "self") -> Tuple[int, bool, bool]:
    """Return the effective capabilities of a process, whether it can gain none any more, and whether a filter refuses system calls."""
    status = "%s/status" % pid
    effective = _field(status, "CapEff") or "0"
    return int(effective, 16), _field(status, "NoNewPrivs") == "1", _field(status, "Seccomp") == "2"


def system(pid: int) -> HostState:
    """Return its memory, and its control group's if that has a limit."""
    state = HostState(rss=_kilobytes(pid, "VmRSS"), rss_peak=_kilobytes(pid, "VmHWM"), anonymous=_kilobytes(pid, "RssAnon"))
    threads = _field("%d/status" % pid, "Threads")
    state.threads = int(threads) if threads.isdigit() else None
    folder = _control_group(pid)
    used, most, events, taken = _GROUP_V1 if folder.startswith(_TOP_V1) else _GROUP
    limit = _number(folder + most) if folder else None
    if limit is not None and limit < _UNLIMITED:
        state.memory, state.memory_limit = _number(folder + used), limit
        state.memory_taken = sum(map(int, re.findall(taken, read(folder + "/memory.stat"), re.MULTILINE)))
        killed = re.search(r"^oom_kill (\d+)$", read(folder + events), re.MULTILINE)
        state.oom_kills = int(killed[1]) if killed else None
    return state


def children(pid: int) -> List[int]:
    """Return the processes that a process has started and that are there."""
    pids: List[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir("%s/%d/task" % (proc_files.ROOT, pid)):
            pids += map(int, text("%d/task/%s/children" % (pid, thread)).split())
    return pids[:_MOST_CHILDREN]


def opened(pid: int) -> Tuple[List[OpenFile], List[OpenSocket], List[str]]:
    """Return the checkpoints that a process has open, its connections, and its cards; all empty if that may not be read."""
    files: List[OpenFile] = []
    cards: List[str] = []
    inodes: Dict[str, None] = {}
    try:
        numbers = os.listdir("%s/%d/fd" % (proc_files.ROOT, pid))
    except OSError:
        return files, [], cards
    for number in numbers:
        target = _link("%d/fd/%s" % (pid, number))
        if target.startswith("socket:["):
            inodes[target[8:-1]] = None
        elif target.startswith("/dev/"):
            cards += [target] if accelerators.by_device_file(target[5:]) else []
        elif target.startswith("/") and _CHECKPOINT.search(target):
            files.append(_file(pid, number, target))
    return files[:_MOST_FILES], _sockets(pid, inodes), sorted(set(cards))[:_MOST_CARDS]


def _file(pid: int, number: str, target: str) -> OpenFile:
    flags = _field("%d/fdinfo/%s" % (pid, number), "flags")
    position = _field("%d/fdinfo/%s" % (pid, number), "pos")
    try:
        size: Optional[int] = os.stat("%s/%d/fd/%s" % (proc_files.ROOT, pid, number)).st_size
    except OSError:
        size = None
    return OpenFile(mask(target)[:500], int(position) if position.isdigit() else None, size, bool(int(flags or "0", 8) & os.O_ACCMODE))


def _sockets(pid: int, inodes: Dict[str, None]) -> List[OpenSocket]:
    """Return the connections among these, and those that are asked for, by the tables of the process's network."""
    sockets: List[OpenSocket] = []
    for name in ("tcp", "tcp6") if inodes else ():
        for line in text("%d/net/%s" % (pid, name)).splitlines()[1:]:
            words = line.split()
            if len(words) > 9 and words[9] in inodes and words[3] in (_ESTABLISHED, _ASKS):
                asks, (unsent, _, unread) = words[3] == _ASKS, words[4].partition(":")
                own = int(words[1].rpartition(":")[2], 16)
                queued = (0, 0) if asks else (int(unsent, 16), int(unread, 16))
                sockets.append(OpenSocket(_address(words[2]), own, *queued, asks))
    return sockets[:_MOST_SOCKETS]


def _address(word: str) -> str:
    """Return an address as the kernel writes it: words of four bytes, each in the host's order."""
    host, _, port = word.partition(":")
    packed = b"".join(struct.pack("=I", int(host[at : at + 8], 16)) for at in range(0, len(host), 8))
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    return "%s:%d" % (socket.inet_ntop(family, packed).replace("::ffff:", ""), int(port, 16))


def _control_group(pid: int) -> str:
    """Return the folder of the control group that limits its memory, in version 1 or 2; a container has its own at the top."""
    for line in text("%d/cgroup" % pid).splitlines():
        _, kinds, path = (line + "::").split(":", 2)
        top, limit = (_TOP_V1, _GROUP_V1[1]) if kinds else (_TOP, _GROUP[1])
        if not kinds or "memory" in kinds.split(","):
            for folder in (top + path.rstrip(":/"), top):
                if os.path.exists(folder + limit):
                    return folder
    return ""


def _number(path: str) -> Optional[int]:
    digits = read(path).strip()
    return int(digits) if digits.isdigit() else None


def _kilobytes(pid: int, name: str) -> Optional[int]:
    word = _field("%d/status" % pid, name).partition(" ")[0]
    return int(word) << 10 if word.isdigit() else None


def _field(path: str, name: str) -> str:
    match = re.search(r"^%s:\s*(.*)$" % name, text(path), re.MULTILINE)
    return match[1].strip() if match else ""


def _link(path: str) -> str:
    try:
        return os.readlink(os.path.join(proc_files.ROOT, path))
    except OSError:
        return ""
