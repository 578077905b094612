"""Inspects a checkpoint for torch.load without unpickling it: its kind, whether it is complete, and its devices, in a few bounded reads."""

import io
import os
import re
import stat
import struct
import sys
import time
from typing import Any, Callable, Iterator, List, NamedTuple, Optional

from ddp_probe.shared.mask_forms import Expression
from ddp_probe.shared.masks import masked
from ddp_probe.shared.ours import ours
from ddp_probe.shared.schema import CheckpointFile
from ddp_probe.traced.facts.describe import class_name, contents, is_path

ReadAt = Callable[[int, int], bytes]  # (offset, number of bytes)

_TAIL = (1 << 16) + 22  # the longest comment, and the end-of-archive record
_DIRECTORY = 1 << 16
_FIRST = 64 << 10  # of a pickle; contains the first storage, unless a long text comes before it
_MOST = 1 << 20
_LOCATIONS = 64

# In the pickle a storage is ('storage', type, key, location, size); the legacy format has one more, None or a tuple.
_STRING = rb"(?:X(?P<length>[\x01-\x20])\0\0\0|\x8c(?P<short>[\x01-\x20]))(?P<location>[a-z_]{2,24}(?::\d{1,4})?)(?:q.|r....|\x94)?"
_MEMO = rb"h(?P<memo>.)|j(?P<far>....)"
_SIZE = rb"(?:K.|M..|J....|\x8a[\x01-\x08].{1,8}?)(?:q.|r....|\x94)?N?"
_STORAGE = Expression(rb"(?:" + _STRING + rb"|" + _MEMO + rb")" + _SIZE + rb"t(?:q.|r....|\x94)?Q", re.S)
_MEMOISED = Expression(rb"X[\x01-\x20]\0\0\0(?P<location>[a-z_]{2,24}(?::\d{1,4})?)(?:q(?P<near>.)|r(?P<far>....))", re.S)


class Directory(NamedTuple):
    """Offset and size of an archive's table of contents."""

    offset: int
    size: int


def _candidates(tail: bytes) -> Iterator[int]:
    """Yield possible offsets of the end-of-archive record: its comment must extend to the end of the file."""
    at = tail.rfind(b"PK\x05\x06")
    while at >= 0:
        record = tail[at : at + 22]
        if len(record) == 22 and at + 22 + struct.unpack_from("<H", record, 20)[0] == len(tail):
            yield at
        at = tail.rfind(b"PK\x05\x06", 0, at)


def _directory64(read_at: ReadAt, end: int) -> Optional[Directory]:
    locator = read_at(end - 20, 20) if end >= 20 else b""
    if locator[:4] != b"PK\x06\x07" or len(locator) < 20:
        return None
    record = read_at(struct.unpack_from("<Q", locator, 8)[0], 56)
    if record[:4] != b"PK\x06\x06" or len(record) < 56:
        return None
    size, offset = struct.unpack_from("<QQ", record, 40)
    return Directory(offset, size)


def directory(read_at: ReadAt, size: int) -> Optional[Directory]:
    """Return the table of contents; None if the end of the archive is missing or points elsewhere."""
    start = max(size - _TAIL, 0)
    tail = read_at(start, size - start)
    for at in _candidates(tail):
        length, offset = struct.unpack_from("<II", tail, at + 12)
        table: Optional[Directory] = Directory(offset, length)
        if offset == 0xFFFFFFFF or length == 0xFFFFFFFF or tail[at + 10 : at + 12] == b"\xff\xff":
            table = _directory64(read_at, start + at)
        if table and table.offset + table.size <= start + at and read_at(table.offset, 4) in (b"PK\x01\x02", b"PK\x05\x06"):
            return table
    return None


def _pickle(read_at: ReadAt, where: Directory, most: int) -> bytes:
    """Return the beginning of data.pkl, which torch writes first; empty if it is compressed."""
    table = read_at(where.offset, min(where.size, _DIRECTORY))
    at = 0
    while table[at : at + 4] == b"PK\x01\x02" and at + 46 <= len(table):
        method, packed, length = struct.unpack_from("<H8xII", table, at + 10)
        name_size, extra_size, comment_size = struct.unpack_from("<HHH", table, at + 28)
        name = table[at + 46 : at + 46 + name_size]
        if name.endswith(b"data.pkl"):
            return b"" if method or packed != length else _member(read_at, struct.unpack_from("<I", table, at + 42)[0], min(length, most))
        at += 46 + name_size + extra_size + comment_size
    return b""


def _member(read_at: ReadAt, offset: int, length: int) -> bytes:
    header = read_at(offset, 30)
    if header[:4] != b"PK\x03\x04" or len(header) < 30:
        return b""
    name_size, extra_size = struct.unpack_from("<HH", header, 26)
    return read_at(offset + 30 + name_size + extra_size, length)


# An xla tensor has no storage: torch pickles its values as a numpy array, together with the device name.
_BARE = Expression(rb"X[\x03-\x14]\x00\x00\x00(?P<location>[a-z]+:[0-9]{1,4})", re.DOTALL)


def _number(near: Optional[bytes], far: Optional[bytes]) -> int:
    return near[0] if near else int.from_bytes(far or b"", "little")


def _locations(pickle: bytes) -> List[str]:
    """Return the devices that storages were saved from; most storages refer to the first one's device by a memo number."""
    named, numbers = {}, set()
    for match in _STORAGE.finditer(pickle):
        if match.group("location"):
            named[match.group("location").decode("ascii")] = True
        else:
            numbers.add(_number(match.group("memo"), match.group("far")))
        if len(named) >= _LOCATIONS:
            break
    for match in _BARE.finditer(pickle) if b"_tensor_from_numpy" in pickle or b"_rebuild_xla_tensor" in pickle else ():
        named[match.group("location").decode("ascii")] = True
    for match in _MEMOISED.finditer(pickle) if numbers else ():
        if _number(match.group("near"), match.group("far")) in numbers and _looks_like_device(match.group("location")):
            named[match.group("location").decode("ascii")] = True
    return sorted(named)[:_LOCATIONS]


def _looks_like_device(text: bytes) -> bool:
    return b":" in text or text in (b"cpu", b"meta", b"mps", b"xla", b"hpu", b"cuda")


def locations_in_zip(read_at: ReadAt, size: int) -> List[str]:
    """Return the devices named in a zip checkpoint."""
    table = directory(read_at, size)
    if table is None:
        return []
    return _locations(_pickle(read_at, table, _FIRST)) or _locations(_pickle(read_at, table, _MOST))


def locations_in_legacy(read_at: ReadAt, size: int) -> List[str]:
    """Return the devices named at the beginning of a checkpoint in torch's format before 1.6."""
    return _locations(read_at(0, min(size, _FIRST))) or _locations(read_at(0, min(size, _MOST)))


# Inspects a checkpoint for torch.load without unpickling it: its kind, whether it is complete, and its devices.
#
# Files are opened by path, or read with pread through the job's descriptor, so that its position never changes.

_PATH = 1000
_HEAD = 64
_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
_MAGIC = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19"  # torch.serialization.MAGIC_NUMBER as pickle writes it
_FILES = (io.FileIO, io.BufferedReader, io.BufferedRandom)


class _Source(NamedTuple):
    """A source that can be read at any offset without changing its position."""

    read_at: ReadAt
    size: int
    opened: int = -1  # our descriptor, to be closed

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


def _note(file: CheckpointFile, status: os.stat_result) -> None:
    file.exists, file.mtime, file.inode = True, status.st_mtime, status.st_ino
    file.age = round(time.time() - status.st_mtime, 3)
    if stat.S_ISREG(status.st_mode):
        file.size = status.st_size
        file.kind = "" if status.st_size else "empty"
    else:
        file.kind = "directory" if stat.S_ISDIR(status.st_mode) else "stream"


def _stat_path(path: str, file: CheckpointFile) -> Optional[os.stat_result]:
    """Note the result of stat; return it if the file can be read safely."""
    file.path = masked(path, _PATH)
    if _URL.match(path):
        file.error = "A URL; not inspected."
        return None
    try:
        status = os.stat(path)
    except ours(FileNotFoundError):
        file.exists = False
        return None
    _note(file, status)
    # Opening a FIFO waits for its writer; opening a device can affect it.
    return status if stat.S_ISREG(status.st_mode) else None


def _open_path(path: str, file: CheckpointFile) -> Optional[_Source]:
    status = _stat_path(path, file)
    if status is None:
        return None
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    return _by_descriptor(fd, 0, status.st_size, fd)


def _inner(f: Any) -> Any:
    """Return Python's own file in a local file of fsspec, which is what Lightning loads from; else the same."""
    module = sys.modules.get("fsspec.implementations.local")
    if module is not None and type(f) is vars(module).get("LocalFileOpener"):
        return vars(f).get("f", f)
    return f


def _open_file(f: Any, file: CheckpointFile) -> Optional[_Source]:
    f = _inner(f)
    file.kind, file.path = "stream", "<%s>" % class_name(f)
    kind = type(f)
    if kind is io.BytesIO:
        return _open_memory(f, file)
    if not any(kind is plain for plain in _FILES) or (kind is not io.FileIO and type(f.raw) is not io.FileIO):
        return None
    fd = f.fileno()
    status = os.fstat(fd)
    name = getattr(f if kind is io.FileIO else f.raw, "name", None)
    file.path = masked(name, _PATH) if type(name) is str else file.path
    _note(file, status)
    return _by_descriptor(fd, f.tell(), status.st_size) if stat.S_ISREG(status.st_mode) else None


def _open_memory(f: io.BytesIO, file: CheckpointFile) -> _Source:
    start = f.tell()
    whole = f.getvalue()  # shares the bytes; getbuffer() would copy them all
    file.size = len(whole)
    return _Source(lambda offset, length: whole[start + offset : start + offset + max(length, 0)], max(len(whole) - start, 0))


def _open(f: Any, file: CheckpointFile) -> Optional[_Source]:
    path = path_of(f)
    if path is None:
        return _open_file(f, file)
    return _open_path(path, file)


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
    file = CheckpointFile()
    try:
        _stat_path(str(path_of(f)), file)
    except ours(OSError) as exc:
        file.error = exc.strerror or class_name(exc)
    except ours(Exception) as exc:
        file.error = class_name(exc)
    return file


def look(f: Any) -> CheckpointFile:
    """Inspect a path or an open file, reading only its head and its end. A path is opened and closed."""
    file = CheckpointFile()
    try:
        source = _open(f, file)
        if source:
            try:
                file.kind = _kind(source.read_at(0, _HEAD), source.size)
                if file.kind == "zip":
                    file.complete = directory(source.read_at, source.size) is not None
            finally:
                source.close()
    except ours(OSError) as exc:
        file.error = exc.strerror or class_name(exc)
    except ours(Exception) as exc:
        file.error = class_name(exc)
    return file


def locations(f: Any) -> List[str]:
    """Return the devices that a checkpoint's storages were saved from; empty if unknown."""
    try:
        source = _open(f, CheckpointFile())
        if not source:
            return []
        try:
            kind = _kind(source.read_at(0, _HEAD), source.size)
            read = {"zip": locations_in_zip, "legacy": locations_in_legacy}.get(kind)
            return read(source.read_at, source.size) if read else []
        finally:
            source.close()
    except ours(Exception):
        return []
