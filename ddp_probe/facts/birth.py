"""When and by what this process was started, as the kernel tells; elsewhere than on Linux nobody does."""

import os
from typing import List, Optional

from ddp_probe.facts.secrets import mask_argv
from ddp_probe.ours import ours

_START_TIME = 19  # Of the fields after the name in brackets, which may itself hold spaces and brackets.
_MOST = 1 << 16


def born() -> Optional[int]:
    """Return the start of this process in clock ticks since the host's."""
    try:
        return int(_read("/proc/self/stat").rpartition(b")")[2].split()[_START_TIME])
    except ours(IndexError, ValueError):
        return None


def boot() -> str:
    """Return the kernel's name for this start of the host."""
    return _read("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()[:64]


def parent() -> List[str]:
    """Return the command line of the process above, secrets masked."""
    words = _read("/proc/%d/cmdline" % os.getppid()).decode("utf-8", "replace").rstrip("\0")
    return mask_argv(words.split("\0")) if words else []


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST)
    except ours(OSError):
        return b""
