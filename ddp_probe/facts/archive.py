"""Reads the frame of a zip archive, and the device names in a checkpoint's pickle, without unpickling: a few bounded reads."""

import re
import struct
from typing import Callable, Iterator, List, NamedTuple, Optional

from ddp_probe.facts._expression import Expression

ReadAt = Callable[[int, int], bytes]  # (offset, how many bytes)

_TAIL = (1 << 16) + 22  # the longest comment, and the end-of-archive record
_DIRECTORY = 1 << 16
_FIRST = 64 << 10  # of a pickle; the first storage is there, unless a long text comes before it
_MOST = 1 << 20
_LOCATIONS = 64

# In the pickle a storage is ('storage', type, key, location, size); the legacy format has one more, None or a tuple.
_STRING = rb"(?:X(?P<length>[\x01-\x20])\0\0\0|\x8c(?P<short>[\x01-\x20]))(?P<location>[a-z_]{2,24}(?::\d{1,4})?)(?:q.|r....|\x94)?"
_MEMO = rb"h(?P<memo>.)|j(?P<far>....)"
_SIZE = rb"(?:K.|M..|J....|\x8a[\x01-\x08].{1,8}?)(?:q.|r....|\x94)?N?"
_STORAGE = Expression(rb"(?:" + _STRING + rb"|" + _MEMO + rb")" + _SIZE + rb"t(?:q.|r....|\x94)?Q", re.S)
_MEMOISED = Expression(rb"X[\x01-\x20]\0\0\0(?P<location>[a-z_]{2,24}(?::\d{1,4})?)(?:q(?P<near>.)|r(?P<far>....))", re.S)


class Directory(NamedTuple):
    """Where an archive's table of contents lies."""

    offset: int
    size: int


def _candidates(tail: bytes) -> Iterator[int]:
    """Yield where an end-of-archive record may begin: its comment has to reach the end of the file."""
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
    """Return where the table of contents lies; None where the end of the archive is missing or points at something else."""
    start = max(size - _TAIL, 0)
    tail = read_at(start, size - start)
    for found in _candidates(tail):
        length, offset = struct.unpack_from("<II", tail, found + 12)
        place: Optional[Directory] = Directory(offset, length)
        if offset == 0xFFFFFFFF or length == 0xFFFFFFFF or tail[found + 10 : found + 12] == b"\xff\xff":
            place = _directory64(read_at, start + found)
        if place and place.offset + place.size <= start + found and read_at(place.offset, 4) in (b"PK\x01\x02", b"PK\x05\x06"):
            return place
    return None


def _pickle(read_at: ReadAt, place: Directory, most: int) -> bytes:
    """Return the beginning of data.pkl, which torch writes first; nothing where it is packed."""
    table = read_at(place.offset, min(place.size, _DIRECTORY))
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


# An xla tensor has no storage to speak of: torch pickles its numbers by numpy, with the device's name beside them.
_BARE = Expression(rb"X[\x03-\x14]\x00\x00\x00(?P<location>[a-z]+:[0-9]{1,4})", re.DOTALL)


def _number(near: Optional[bytes], far: Optional[bytes]) -> int:
    return near[0] if near else int.from_bytes(far or b"", "little")


def _locations(pickle: bytes) -> List[str]:
    """Return the devices that storages were saved from; most refer to the first by its number in the pickle's memo."""
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
    place = directory(read_at, size)
    if place is None:
        return []
    return _locations(_pickle(read_at, place, _FIRST)) or _locations(_pickle(read_at, place, _MOST))


def locations_in_legacy(read_at: ReadAt, size: int) -> List[str]:
    """Return the devices named at the beginning of a checkpoint in torch's format before 1.6."""
    return _locations(read_at(0, min(size, _FIRST))) or _locations(read_at(0, min(size, _MOST)))
