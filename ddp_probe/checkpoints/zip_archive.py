"""Reads the directory of a zip archive, and its records, as torch's reader does, and tells what in them is not as it should be.

Python's zipfile reads the whole directory into memory, whatever size the file claims, keeps an object for each entry, and accepts what torch does
not (bytes before the archive); so the directory is read here, in parts. Records are inflated by zlib, up to a limit.
"""

import struct
import zlib
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.checkpoints.model import BrokenError, Fault, UnknownError
from ddp_probe.checkpoints.source import Source

ENTRIES = 250_000
_TAIL = (1 << 16) + 22  # The longest comment, and the record before it.
_PART = 1 << 20
_HEADER, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_FAULTS = 100
_MAX32, _MAX16 = 0xFFFFFFFF, 0xFFFF


class Entry(NamedTuple):
    """One record, as the directory has it."""

    name: str
    method: int
    flags: int
    crc: int
    packed: int
    size: int
    offset: int  # Of its local header.


class Directory(NamedTuple):
    """The records in the directory's order, and the directory's offset."""

    entries: List[Entry]
    offset: int
    comment: int  # Bytes after the end record.


class _End(NamedTuple):
    at: int
    entries: int
    size: int
    offset: int


def find_end(source: Source) -> Optional[_End]:
    """Return the record that ends an archive: the last one, with anything after it, as torch's reader takes it."""
    start = max(source.size - _TAIL, 0)
    tail = source.read(start, source.size - start)
    found = tail.rfind(_END)
    if found < 0 or len(tail) - found < 22:
        found = tail.rfind(_END, 0, found) if found >= 0 else -1
    if found < 0:
        return None
    count, size, offset = struct.unpack_from("<HII", tail, found + 10)
    at = start + found
    if count == _MAX16 or _MAX32 in (size, offset):
        return _end64(source, at) or _End(at, count, size, offset)
    return _End(at, count, size, offset)


def _end64(source: Source, at: int) -> Optional[_End]:
    locator = source.read(at - 20, 20) if at >= 20 else b""
    if locator[:4] != b"PK\x06\x07" or len(locator) < 20:
        return None
    record = source.read(struct.unpack_from("<Q", locator, 8)[0], 56)
    if record[:4] != b"PK\x06\x06" or len(record) < 56:
        return None
    count, size, offset = struct.unpack_from("<QQQ", record, 32)
    return _End(at, count, size, offset)


def read_directory(source: Source, end: _End) -> Directory:
    """Return all entries; a directory that torch's reader refuses is broken."""
    if end.offset + end.size > end.at:
        raise BrokenError(
            "The directory of the archive is said to be at byte %d with %d bytes, beyond the archive's end." % (end.offset, end.size), "", end.at
        )
    if end.entries > ENTRIES:
        raise UnknownError("The archive has %d records; at most %d are read." % (end.entries, ENTRIES))
    if end.entries * 46 > end.size:
        raise BrokenError("The directory of the archive has %d bytes for %d records." % (end.size, end.entries), "", end.offset)
    entries = [entry for _, entry in zip(range(end.entries), _entries(source, end))]
    if len(entries) < end.entries:
        raise BrokenError("The directory of the archive is said to have %d records, and has %d." % (end.entries, len(entries)), "", end.offset)
    return Directory(entries, end.offset, source.size - end.at - 22)


def _entries(source: Source, end: _End) -> Iterator[Entry]:
    held, at, last = b"", end.offset, end.offset + end.size
    while at < last or held:
        if len(held) < 1 << 18 and at < last:  # More than the longest entry.
            part = source.read(at, min(_PART, last - at))
            held, at = held + part, at + len(part)
        used = 0
        for entry, length in _parse(held):
            used += length
            yield entry
        if not used:
            return
        held = held[used:]


def _parse(held: bytes) -> Iterator[Tuple[Entry, int]]:
    at = 0
    while at + 46 <= len(held) and held[at : at + 4] == _CENTRAL:
        flags, method, crc, packed, size = struct.unpack_from("<HH4xIII", held, at + 8)
        name, extra, comment = struct.unpack_from("<HHH", held, at + 28)
        length = 46 + name + extra + comment
        if at + length > len(held):
            return
        raw = held[at + 46 : at + 46 + name]
        offset = struct.unpack_from("<I", held, at + 42)[0]
        sizes = _zip64(held[at + 46 + name : at + 46 + name + extra], size, packed, offset)
        yield Entry(raw.decode("utf-8", "backslashreplace"), method, flags, crc, sizes[1], sizes[0], sizes[2]), length
        at += length


def _zip64(extra: bytes, size: int, packed: int, offset: int) -> Tuple[int, int, int]:
    """Return sizes and offset, from the extra field if they do not fit in 32 bits."""
    if _MAX32 not in (size, packed, offset):
        return size, packed, offset
    at = 0
    while at + 4 <= len(extra):
        tag, length = struct.unpack_from("<HH", extra, at)
        if tag == 1:
            words = [int.from_bytes(extra[begin : begin + 8], "little") for begin in range(at + 4, min(at + 4 + length, len(extra)) - 7, 8)]
            return tuple(words.pop(0) if value == _MAX32 and words else value for value in (size, packed, offset))  # type: ignore[return-value]  # Three.
        at += 4 + length
    return size, packed, offset


class Archive:
    """An archive whose directory has been read. What is wrong with its records is collected in `faults`."""

    def __init__(self, source: Source, directory: Directory) -> None:
        self.source = source
        self.entries = directory.entries
        self.by_name: Dict[str, Entry] = {}
        self.starts: Dict[str, int] = {}
        self.faults: List[Fault] = []
        self.directory = directory
        for entry in self.entries:
            if entry.name in self.by_name:
                self._fault("Two records have this name; torch.load reads one of them.", entry, unnoticed=True)
            self.by_name.setdefault(entry.name, entry)
        self._lay_out()

    def _fault(self, text: str, entry: Entry, *, unnoticed: bool = False) -> None:
        if len(self.faults) < _FAULTS:
            self.faults.append(Fault(text, entry.name, entry.offset, unnoticed))

    def _lay_out(self) -> None:
        """Check each local header, and that no record reaches into the next one or into the directory."""
        ends = 0
        last: Optional[Entry] = None
        for entry in sorted(self.entries, key=lambda entry: entry.offset):
            start = self._start(entry)
            if start is None:
                continue
            self.starts.setdefault(entry.name, start)
            if entry.offset < ends and last is not None:
                self._fault("This record begins within the record %s." % last.name, entry, unnoticed=True)
            if start + entry.packed > self.directory.offset:
                self._fault("This record is said to end at byte %d, behind the directory." % (start + entry.packed), entry)
            ends, last = start + entry.packed, entry

    def _start(self, entry: Entry) -> Optional[int]:
        """Return the offset of a record's bytes, if its local header is there."""
        header = self.source.read(entry.offset, 30)
        if header[:4] != _HEADER or len(header) < 30:
            self._fault("The directory says that this record begins here, and it does not.", entry)
            return None
        flags, method, packed, size, name, extra = struct.unpack("<6xHH8xIIHH", header)
        raw = self.source.read(entry.offset + 30, name)
        if raw.decode("utf-8", "backslashreplace") != entry.name:
            self._fault(
                "The directory calls this record so; its own header calls it %s." % raw[:100].decode("utf-8", "backslashreplace"),
                entry,
                unnoticed=True,
            )
        elif not flags & 8 and (method != entry.method or ((size, packed) != (entry.size, entry.packed) and _MAX32 not in (size, packed))):
            self._fault("The directory says %d bytes; the record's own header says %d." % (entry.size, size), entry, unnoticed=True)
        elif entry.method == 0 and entry.packed != entry.size:
            self._fault("A record that is not compressed is said to have %d bytes in %d." % (entry.size, entry.packed), entry)
        return int(entry.offset) + 30 + int(name) + int(extra)

    def record(self, entry: Entry) -> Optional[Source]:
        """Return a stored record as a source."""
        start = self.starts.get(entry.name)
        return None if start is None else self.source.part(start, entry.packed)

    def small(self, entry: Entry, limit: int) -> bytes:
        """Return the bytes of a record, inflated; more than the limit are not inflated."""
        found = self.record(entry)
        if found is None:
            raise BrokenError("This record is not there.", entry.name, entry.offset)
        if entry.method == 0:
            return found.read(0, min(limit, entry.size))
        if entry.method != 8:
            raise UnknownError("The record %s is compressed by method %d." % (entry.name, entry.method))
        return b"".join(_inflated(found, entry, limit))

    def check(self, entry: Entry) -> None:
        """Read all of a record and compare its checksum; a difference is a fault that torch.load does not see."""
        found = self.record(entry)
        if found is None:
            return
        total = 0
        try:
            for part in _inflated(found, entry, entry.size + 1) if entry.method == 8 else found.blocks(0, entry.packed):
                total = zlib.crc32(part, total)
        except BrokenError as exc:
            self.faults.append(exc.fault)
            return
        if entry.method in (0, 8) and total != entry.crc:
            text = "The bytes of this record have changed since it was written (CRC %08x, written as %08x)." % (total, entry.crc)
            self._fault(text, entry, unnoticed=True)


def _inflated(found: Source, entry: Entry, limit: int) -> Iterator[bytes]:
    """Yield the inflated bytes in parts, and stop at the limit."""
    engine = zlib.decompressobj(-15)
    total = 0
    try:
        for part in found.blocks(0, found.size):
            left = part
            while left and not engine.eof:
                made = engine.decompress(left, _PART)
                total += len(made)
                yield made
                if total >= limit:
                    return
                left = engine.unconsumed_tail
    except zlib.error as exc:
        raise BrokenError("This record cannot be inflated: %s." % exc, entry.name, entry.offset) from exc
