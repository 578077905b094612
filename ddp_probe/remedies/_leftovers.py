"""What a process leaves that is killed in a save, and how the next save tells it from a save that is under way.

A process number alone does not tell: containers on one host number their processes alike, and hosts share folders.
"""

import itertools
import os
import socket
import zlib
from typing import List

from ddp_probe.ours import ours, suppress

_PREFIX = ".ddp_probe_save"
_FORGOTTEN = 3600.0  # Seconds without a byte after which a save by a process that cannot be seen from here is given up.

_numbers = itertools.count(1)


def name() -> str:
    """Return a name that no other save has: the processes that can see each other, one of them, and its how manieth save."""
    return "%s-%s-%d-%s-%d" % (_PREFIX, _world(), os.getpid(), _born(os.getpid()), next(_numbers))


def sweep(own: str) -> None:
    """Remove what others have left beside this folder, which was made this moment and so tells the file server's time."""
    with suppress(OSError):
        parent, now = os.path.dirname(own), os.stat(own).st_mtime
        found: List[str] = [entry.name for entry in os.scandir(parent) if entry.name.startswith(_PREFIX + "-")]
        for each in found:
            if each != os.path.basename(own) and _is_left(os.path.join(parent, each), now):
                remove(os.path.join(parent, each))


def remove(folder: str) -> None:
    """Remove a folder and the files in it, as far as that is allowed."""
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            os.unlink(entry.path)
        os.rmdir(folder)


def _is_left(folder: str, now: float) -> bool:
    """Tell that the save which made this folder has ended."""
    parts = os.path.basename(folder)[len(_PREFIX) + 1 :].split("-")
    if len(parts) == 4 and parts[0] == _world() and parts[1].isdecimal() and parts[2]:
        return _born(int(parts[1])) != parts[2]
    return now - _last_byte(folder) > _FORGOTTEN


def _last_byte(folder: str) -> float:
    return max([os.stat(folder).st_mtime, *(entry.stat().st_mtime for entry in os.scandir(folder))])


def _world() -> str:
    """Name the processes whose numbers mean something here: one boot of one kernel, one namespace."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            told = "%s %d" % (file.read().strip(), os.stat("/proc/self/ns/pid").st_ino)
    except ours(OSError):
        told = socket.gethostname()
    return "%08x" % zlib.crc32(told.encode("utf-8", "replace"))


def _born(pid: int) -> str:
    """Return when a process has started, in the kernel's ticks; empty where it has ended, be it that nobody has collected it."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except ours(OSError):
        return ""
    return "" if fields[0] in (b"Z", b"X", b"x") else fields[19].decode("ascii")
