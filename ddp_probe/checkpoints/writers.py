"""Finds the processes of this host that have a file open for writing, if this user may read it in /proc."""

import os
from typing import Iterator, List

from ddp_probe.checkpoints.judged import OpenWriter
from ddp_probe.shared.regular_files import open_bytes, open_text

_MOST = 20
_WRITES = os.O_WRONLY | os.O_RDWR


def writers(status: os.stat_result) -> List[OpenWriter]:
    """Return the processes that have this file open for writing; empty if there are none, or if they may not be seen."""
    open_writers: List[OpenWriter] = []
    for pid in _processes():
        if len(open_writers) >= _MOST:
            break
        if pid != os.getpid() and _writes(pid, status):
            open_writers.append(OpenWriter(pid, _command(pid)))
    return open_writers


def _processes() -> Iterator[int]:
    try:
        yield from (int(name) for name in os.listdir("/proc") if name.isdigit())
    except OSError:
        return


def _writes(pid: int, status: os.stat_result) -> bool:
    folder = "/proc/%d/fd" % pid
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return any(_is_it(folder, name, status) and _for_writing(pid, name) for name in names)


def _is_it(folder: str, name: str, status: os.stat_result) -> bool:
    try:
        # The path of a descriptor is not followed to the file: stat of it is answered by the kernel, also if the file was deleted.
        open_file = os.stat(os.path.join(folder, name))
    except OSError:
        return False
    return (open_file.st_dev, open_file.st_ino) == (status.st_dev, status.st_ino)


def _for_writing(pid: int, name: str) -> bool:
    try:
        with open_text("/proc/%d/fdinfo/%s" % (pid, name), "replace") as stream:
            for line in stream:
                if line.startswith("flags:"):
                    return bool(int(line.split()[1], 8) & _WRITES)
    except (OSError, ValueError, IndexError):
        return False
    return False


def _command(pid: int) -> str:
    try:
        with open_bytes("/proc/%d/cmdline" % pid) as stream:
            return stream.read(4096).replace(b"\0", b" ").decode("utf-8", "replace").strip()[:200]
    except OSError:
        return ""
