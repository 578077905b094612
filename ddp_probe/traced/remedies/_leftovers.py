"""Leftovers: the temporary files of a process that was killed during a save; the next save removes them.

The pid alone does not show whether a save is still in progress: containers on one host use the same pids, and hosts share folders.
"""

import itertools
import os
import socket
import zlib
from typing import List, NamedTuple, Optional

from ddp_probe.shared.ours import ours, suppress

_PREFIX = ".ddp_probe_save"
_FORGOTTEN = 3600.0  # Seconds without a byte after which a save by a process that cannot be seen from here counts as dead.

_counter = itertools.count(1)


class _Saver(NamedTuple):
    """Who makes a save, and which one: the parts of a folder's name."""

    namespace: str  # The processes whose numbers mean the same as here.
    pid: str
    started: str  # In the kernel's ticks.
    save: str  # A per-process save counter.


def name() -> str:
    """Return a folder name that no other save has."""
    pid = os.getpid()
    return "-".join((_PREFIX, *_Saver(_namespace(), str(pid), _started(pid), str(next(_counter)))))


def _saver(folder: str) -> Optional[_Saver]:
    """Return whose folder this is, or None if its name has another form."""
    parts = os.path.basename(folder)[len(_PREFIX) + 1 :].split("-")
    return _Saver(*parts) if len(parts) == len(_Saver._fields) else None


def sweep(own: str) -> None:
    """Remove what others have left beside this folder, which was made a moment ago and so carries the file server's time."""
    with suppress(OSError):
        parent, now = os.path.dirname(own), os.stat(own).st_mtime
        found: List[str] = [entry.name for entry in os.scandir(parent) if entry.name.startswith(_PREFIX + "-")]
        for each in found:
            if each != os.path.basename(own) and _is_abandoned(os.path.join(parent, each), now):
                remove(os.path.join(parent, each))


def remove(folder: str) -> None:
    """Remove a folder and the files in it, as far as that is allowed."""
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            os.unlink(entry.path)
        os.rmdir(folder)


def _is_abandoned(folder: str, now: float) -> bool:
    """Tell whether the process that made this folder has ended."""
    saver = _saver(folder)
    if saver is not None and saver.namespace == _namespace() and saver.pid.isdecimal() and saver.started:
        return _started(int(saver.pid)) != saver.started
    return now - _last_byte(folder) > _FORGOTTEN


def _last_byte(folder: str) -> float:
    return max([os.stat(folder).st_mtime, *(entry.stat().st_mtime for entry in os.scandir(folder))])


def _namespace() -> str:
    """Name the processes whose numbers mean the same as here: one boot of one kernel, one PID namespace."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            told = "%s %d" % (file.read().strip(), os.stat("/proc/self/ns/pid").st_ino)
    except ours(OSError):
        told = socket.gethostname()
    return "%08x" % zlib.crc32(told.encode("utf-8", "replace"))


def _started(pid: int) -> str:
    """Return when a process started, in the kernel's ticks; empty if it exited, even as a zombie."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except ours(OSError):
        return ""
    return "" if fields[0] in (b"Z", b"X", b"x") else fields[19].decode("ascii")
