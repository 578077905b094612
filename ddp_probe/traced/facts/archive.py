"""Reads the structure of a zip archive and the device names in a checkpoint's pickle, in a few bounded reads, without unpickling."""

import re
import struct
from typing import Callable, Iterator, List, NamedTuple, Optional

from ddp_probe.shared.masking.expression import Expression

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
    found = tail.rfind(b"PK\x05\x06")
    while found >= 0:
        record = tail[found : found + 22]
        if len(record) == 22 and found + 22 + struct.unpack_from("<H", record, 20)[0] == len(tail):
            yield found
        found = tail.rfind(b"PK\x05\x06", 0, found)


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
    for found in _candidates(tail):
        length, offset = struct.unpack_from("<II", tail, found + 12)
        table: Optional[Directory] = Directory(offset, length)
        if offset == 0xFFFFFFFF or length == 0xFFFFFFFF or tail[found + 10 : found + 12] == b"\xff\xff":
            table = _directory64(read_at, start + found)
        if table and table.offset + table.size <= start + found and read_at(table.offset, 4) in (b"PK\x01\x02", b"PK\x05\x06"):
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
