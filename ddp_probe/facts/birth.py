"""When this process was started, and by which command, according to the kernel; available on Linux only."""

import os
from typing import List, Optional

from ddp_probe.facts.secrets import mask_argv
from ddp_probe.ours import ours

_START_TIME = 19  # Among the fields after the name in brackets, which may contain spaces and brackets.
_MOST = 1 << 16


def born() -> Optional[int]:
    """Return the start time of this process in clock ticks since boot."""
    try:
        return int(_read("/proc/self/stat").rpartition(b")")[2].split()[_START_TIME])
    except ours(IndexError, ValueError):
        return None


def boot() -> str:
    """Return the kernel's ID of this boot."""
    return _read("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()[:64]


def parent() -> List[str]:
    """Return the command line of the parent process, secrets masked."""
    words = _read("/proc/%d/cmdline" % os.getppid()).decode("utf-8", "replace").rstrip("\0")
    return mask_argv(words.split("\0")) if words else []


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST)
    except ours(OSError):
        return b""
