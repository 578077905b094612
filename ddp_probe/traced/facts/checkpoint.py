"""Inspects a checkpoint for torch.load without unpickling it: its kind, whether it is complete, and its devices.

Files are opened by path, or read with pread through the job's own descriptor, so that its position never changes.
"""

import io
import os
import re
import stat
import time
from typing import Any, List, NamedTuple, Optional

from ddp_probe.shared.masking.secrets import masked
from ddp_probe.shared.ours import ours
from ddp_probe.shared.schema import CheckpointFile
from ddp_probe.traced.facts import archive
from ddp_probe.traced.facts.describe import class_name, is_path
from ddp_probe.traced.facts.loaded import contents

_PATH = 1000
_HEAD = 64
_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
_MAGIC = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19"  # torch.serialization.MAGIC_NUMBER as pickle writes it
_FILES = (io.FileIO, io.BufferedReader, io.BufferedRandom)


class _Source(NamedTuple):
    """A source that can be read at any offset without changing its position."""

    read_at: archive.ReadAt
    size: int
    opened: int = -1  # our own descriptor, to be closed

    def close(self) -> None:
        if self.opened >= 0:
            os.close(self.opened)


def _by_descriptor(fd: int, start: int, size: int, opened: int = -1) -> _Source:
    return _Source(lambda offset, length: os.pread(fd, max(length, 0), start + offset), max(size - start, 0), opened)


def path_of(f: Any) -> Optional[str]:
    """Return the path in f; a PathLike class of the job is not used, because that would run its code."""
    kind = type(f)
    if issubclass(kind, str):
        return str.__str__(f)
    if kind is bytes:
        return os.fsdecode(f)
    return str(f) if is_path(f) else None


def storage_path(f: Any, storage: Any = None) -> Optional[str]:
    """Return the path in f; if it is not one, the folder of a reader or a writer of torch.distributed.checkpoint."""
    if f is None and class_name(storage).startswith("torch.distributed.checkpoint."):
        f = contents(storage).get("path")
    return path_of(f)


def is_checkpoint(head: bytes, size: int) -> bool:
    """Tell by the first bytes whether a file of this size is a checkpoint."""
    return _kind(head, size) in ("zip", "legacy", "pickle", "safetensors")


def _note(found: CheckpointFile, status: os.stat_result) -> None:
    found.exists, found.mtime, found.inode = True, status.st_mtime, status.st_ino
    found.age = round(time.time() - status.st_mtime, 3)
    if stat.S_ISREG(status.st_mode):
        found.size = status.st_size
        found.kind = "" if status.st_size else "empty"
    else:
        found.kind = "directory" if stat.S_ISDIR(status.st_mode) else "stream"


def _stat_path(path: str, found: CheckpointFile) -> Optional[os.stat_result]:
    """Note the result of stat; return it if the file can be read safely."""
    found.path = masked(path, _PATH)
    if _URL.match(path):
        found.error = "A URL; not inspected."
        return None
    try:
        status = os.stat(path)
    except ours(FileNotFoundError):
        found.exists = False
        return None
    _note(found, status)
    # Opening a FIFO waits for its writer; opening a device can affect it.
    return status if stat.S_ISREG(status.st_mode) else None


def _open_path(path: str, found: CheckpointFile) -> Optional[_Source]:
    status = _stat_path(path, found)
    if status is None:
        return None
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    return _by_descriptor(fd, 0, status.st_size, fd)


def _open_file(f: Any, found: CheckpointFile) -> Optional[_Source]:
    found.kind, found.path = "stream", "<%s>" % class_name(f)
    kind = type(f)
    if kind is io.BytesIO:
        return _open_memory(f, found)
    if not any(kind is known for known in _FILES) or (kind is not io.FileIO and type(f.raw) is not io.FileIO):
        return None
    fd = f.fileno()
    status = os.fstat(fd)
    name = getattr(f if kind is io.FileIO else f.raw, "name", None)
    found.path = masked(name, _PATH) if type(name) is str else found.path
    _note(found, status)
    return _by_descriptor(fd, f.tell(), status.st_size) if stat.S_ISREG(status.st_mode) else None


def _open_memory(f: io.BytesIO, found: CheckpointFile) -> _Source:
    start = f.tell()
    whole = f.getvalue()  # shares the bytes; getbuffer() would copy them all
    found.size = len(whole)
    return _Source(lambda offset, length: whole[start + offset : start + offset + max(length, 0)], max(len(whole) - start, 0))


def _open(f: Any, found: CheckpointFile) -> Optional[_Source]:
    path = path_of(f)
    if path is None:
        return _open_file(f, found)
    return _open_path(path, found)


def _kind(head: bytes, size: int) -> str:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not head:
        return "empty" if size == 0 else "unknown"
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return "zip"
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "legacy" if _MAGIC in head[:32] else "pickle"
    if head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= min(size, 100 << 20):
        return "safetensors"
    if head.startswith(b"version https://git-lfs"):
        return "git-lfs"
    if start[:14].lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        return "html"
    if not all(byte >= 32 or byte in b"\t\r\n" for byte in head):
        return "unknown"
    return "json" if start[:1] in (b"{", b"[") else "text"


def stat_of(f: Any) -> CheckpointFile:
    """Inspect without opening anything: only stat for a path, also the contents for an open file.

    Opening and closing a file drops every POSIX lock that the process holds on it, whichever descriptor took the lock.
    """
    if path_of(f) is None:
        return look(f)
    found = CheckpointFile()
    try:
        _stat_path(str(path_of(f)), found)
    except ours(OSError) as exc:
        found.error = exc.strerror or class_name(exc)
    except ours(Exception) as exc:
        found.error = class_name(exc)
    return found


def look(f: Any) -> CheckpointFile:
    """Inspect a path or an open file, reading only its head and its end. A path is opened and closed."""
    found = CheckpointFile()
    try:
        source = _open(f, found)
        if source:
            try:
                found.kind = _kind(source.read_at(0, _HEAD), source.size)
                if found.kind == "zip":
                    found.complete = archive.directory(source.read_at, source.size) is not None
            finally:
                source.close()
    except ours(OSError) as exc:
        found.error = exc.strerror or class_name(exc)
    except ours(Exception) as exc:
        found.error = class_name(exc)
    return found


def locations(f: Any) -> List[str]:
    """Return the devices that a checkpoint's storages were saved from; empty if unknown."""
    try:
        source = _open(f, CheckpointFile())
        if not source:
            return []
        try:
            kind = _kind(source.read_at(0, _HEAD), source.size)
            read = {"zip": archive.locations_in_zip, "legacy": archive.locations_in_legacy}.get(kind)
            return read(source.read_at, source.size) if read else []
        finally:
            source.close()
    except ours(Exception):
        return []
