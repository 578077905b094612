"""Reads a zip archive: the directory at its end as torch's reader (miniz) does, in parts, refusing what it refuses, and then the records.

Python's zipfile reads the whole directory into memory, whatever size the file claims, keeps an object for each entry, and accepts what torch does
not (bytes before the archive).
"""

import struct
import zlib
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.checkpoints.checkpoint_file import FileRange
from ddp_probe.checkpoints.judged import BrokenError, Damage, UnknownError
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

ENTRIES = 250_000
MAX32 = 0xFFFFFFFF
_MAX16 = 0xFFFF
_TAIL = (1 << 16) + 22  # The longest comment, and the record before it.
_PART = 1 << 20
_LONGEST = 46 + 3 * _MAX16  # Bytes of an entry.
_CENTRAL, _END = b"PK\x01\x02", b"PK\x05\x06"


class ZipEntry(NamedTuple):
    """One record, as the directory has it."""

    name: str
    method: int
    flags: int
    crc: int
    packed: int
    size: int
    offset: int  # Offset of its local header.
    disk: int


class End(NamedTuple):
    """The record that ends an archive."""

    at: int
    disk: int
    directory_disk: int
    here: int  # Entries on this disk.
    entries: int
    size: int
    offset: int


class ZipDirectory(NamedTuple):
    """The records in the directory's order, the directory's offset, and what torch does not look for."""

    entries: List[ZipEntry]
    offset: int
    behind: int  # Bytes after the end record.
    faults: List[Damage]


def find_end(source: FileRange) -> Optional[End]:
    """Return the record that ends an archive: the last one, with anything after it, as torch's reader takes it."""
    start = max(source.size - _TAIL, 0)
    tail = source.read(start, source.size - start)
    place = tail.rfind(_END, 0, max(len(tail) - 18, 0))
    if place < 0:
        return None
    end = End(start + place, *struct.unpack_from("<HHHHII", tail, place + 4))
    return _end64(source, end) or end


def _end64(source: FileRange, end: End) -> Optional[End]:
    locator = source.read(end.at - 20, 20) if end.at >= 20 else b""
    if locator[:4] != b"PK\x06\x07" or len(locator) < 20:
        return None
    at = struct.unpack_from("<Q", locator, 8)[0]
    if at + 56 > source.size:
        text = say("The end of the archive points to byte {at}, behind the end of the file.", at=at)
        raise BrokenError(text, "", end.at)
    record = source.read(at, 56)
    if record[:4] != b"PK\x06\x06":
        return None
    if struct.unpack_from("<Q", record, 4)[0] < 44 or struct.unpack_from("<I", locator, 16)[0] != 1:
        text = say("The end of the archive is not valid: its own size or the number of disks is wrong.")
        raise BrokenError(text, "", at)
    return End(end.at, *struct.unpack_from("<IIQQQQ", record, 16))


def read_directory(source: FileRange, end: End) -> ZipDirectory:
    """Return all entries; a directory that torch's reader refuses is broken."""
    wrong = _wrong(end, source.size)
    if wrong:
        raise BrokenError(say("The end of the archive is not valid: {why}.", why=wrong), "", end.at)
    if end.entries > ENTRIES:
        raise UnknownError(say("The archive has {count} records; at most {limit} are read.", count=end.entries, limit=ENTRIES))
    faults = []
    if end.offset + end.size > end.at:
        text = say(
            "The directory of the archive is said to have {count} bytes at byte {at}, and reaches into the archive's end.",
            count=end.size,
            at=end.offset,
        )
        faults.append(Damage(text, "", end.at, unnoticed=True))
    entries: List[ZipEntry] = []
    for entry in _entries(source, end):
        _insist(entry, end, source.size)
        entries.append(entry)
        if len(entries) == end.entries:
            break
    if len(entries) < end.entries:
        text = say(
            "The directory of the archive is said to have {told} records, and has {count}.",
            told=end.entries,
            count=len(entries),
        )
        raise BrokenError(text, "", end.offset)
    return ZipDirectory(entries, end.offset, source.size - end.at - 22, faults)


def _wrong(end: End, size: int) -> str:
    """Return what torch's reader refuses in the end record."""
    if end.entries != end.here:
        return say("it has {here} records here, and {total} in all", here=end.here, total=end.entries)
    if (end.disk or end.directory_disk) and (end.disk, end.directory_disk) != (1, 1):
        return say("it is said to be on several disks")
    if end.size > MAX32:
        return say("its directory is said to have {count} bytes", count=end.size)
    if end.entries * 46 > end.size:
        return say("its directory has {count} bytes for {records} records", count=end.size, records=end.entries)
    if end.offset > end.at or end.offset + end.size > size:
        return say("its directory is said to have {count} bytes at byte {at}", count=end.size, at=end.offset)
    return ""


def _insist(entry: ZipEntry, end: End, size: int) -> None:
    wrong = ""
    if entry.disk == _MAX16 or entry.disk not in (end.disk, 1):
        wrong = say("it is said to be on another disk")
    elif entry.flags & 0x2000:
        wrong = say("it is said to be masked")
    elif (not entry.method and entry.size != entry.packed) or (entry.size and not entry.packed):
        wrong = say("it is said to have {count} bytes in {packed}", count=entry.size, packed=entry.packed)
    elif entry.offset + 30 + entry.packed > size:
        wrong = say("it is said to end at byte {end}", end=entry.offset + 30 + entry.packed)
    if wrong:
        text = say("The directory of the archive is not valid at this record: {why}.", why=wrong)
        raise BrokenError(text, entry.name, entry.offset)


def _entries(source: FileRange, end: End) -> Iterator[ZipEntry]:
    held, at, last = b"", end.offset, min(end.offset + end.size, end.at)
    while at < last or held:
        if len(held) < _LONGEST and at < last:
            part = source.read(at, min(_PART, last - at))
            held, at = held + part, at + len(part)
        used = 0
        for entry, length in _parse(held):
            used += length
            yield entry
        if not used:
            return
        held = held[used:]


def _parse(held: bytes) -> Iterator[Tuple[ZipEntry, int]]:
    at = 0
    while at + 46 <= len(held) and held[at : at + 4] == _CENTRAL:
        flags, method, crc, packed, size, name, extra, comment, disk, offset = struct.unpack_from("<HH4xIIIHHHH6xI", held, at + 8)
        length = 46 + name + extra + comment
        if at + length > len(held):
            return
        raw = held[at + 46 : at + 46 + name]
        sizes = _sizes64(held[at + 46 + name : at + 46 + name + extra], [size, packed, offset])
        yield ZipEntry(_name(raw), method, flags, crc, sizes[1], sizes[0], sizes[2], disk), length
        at += length


def _name(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        text = say("The name of a record is not valid UTF-8; torch.load refuses it.")
        raise BrokenError(text, raw.decode("utf-8", "backslashreplace")[:200]) from exc


def _sizes64(extra: bytes, sizes: List[int]) -> List[int]:
    """Return sizes and offset, from the extra field if they do not fit in 32 bits."""
    at = 0
    while MAX32 in sizes and at + 4 <= len(extra):
        tag, length = struct.unpack_from("<HH", extra, at)
        if tag == 1:
            inside = extra[at + 4 : at + 4 + length]
            words = [int.from_bytes(inside[begin : begin + 8], "little") for begin in range(0, len(inside) - 7, 8)]
            return [words.pop(0) if value == MAX32 and words else value for value in sizes]
        at += 4 + length
    return sizes


# Checks the records of a zip archive: where they are, that they do not overlap, and their checksums. zlib inflates them, up to a limit.

_HEADER = b"PK\x03\x04"
_FAULTS = 100


class Archive:
    """An archive whose directory has been read. What is wrong with its records is collected in `faults`."""

    def __init__(self, source: FileRange, directory: ZipDirectory) -> None:
        self.source = source
        self.entries = directory.entries
        self.by_name: Dict[str, ZipEntry] = {}
        self.starts: Dict[str, int] = {}
        self.faults: List[Damage] = list(directory.faults)
        self.directory = directory
        for entry in self.entries:
            if entry.name in self.by_name:
                self._fault(say("Two records have this name; torch.load reads one of them."), entry, unnoticed=True)
            self.by_name.setdefault(entry.name, entry)
        self._lay_out()

    def _fault(self, text: str, entry: ZipEntry, *, unnoticed: bool = False) -> None:
        if len(self.faults) < _FAULTS:
            self.faults.append(Damage(text, entry.name, entry.offset, unnoticed))

    def _lay_out(self) -> None:
        """Check each local header, and that no record reaches into the next one or into the directory."""
        ends = 0
        last: Optional[ZipEntry] = None
        for entry in sorted(self.entries, key=lambda entry: entry.offset):
            start = self._start(entry)
            if start is None:
                continue
            self.starts.setdefault(entry.name, start)
            if entry.offset < ends and last is not None:
                self._fault(say("This record begins within the record {name}.", name=quoted(last.name)), entry, unnoticed=True)
            if start + entry.packed > self.directory.offset:
                outside = start + entry.packed > self.source.size
                text = say("This record is said to end at byte {end}, behind the directory.", end=start + entry.packed)
                self._fault(text, entry, unnoticed=not outside)
            ends, last = start + entry.packed, entry

    def _start(self, entry: ZipEntry) -> Optional[int]:
        """Return the offset of a record's bytes, if its local header is there."""
        header = self.source.read(entry.offset, 30)
        if header[:4] != _HEADER or len(header) < 30:
            self._fault(say("The directory says that this record begins here, and it does not."), entry)
            return None
        flags, method, packed, size, name, extra = struct.unpack("<6xHH8xIIHH", header)
        raw = self.source.read(entry.offset + 30, name)
        if raw.decode("utf-8", "backslashreplace") != entry.name:
            text = say(
                "The directory calls this record so; its own header calls it {name}.",
                name=quoted(raw[:100].decode("utf-8", "backslashreplace")),
            )
            self._fault(text, entry, unnoticed=True)
        elif not flags & 8 and (method != entry.method or ((size, packed) != (entry.size, entry.packed) and MAX32 not in (size, packed))):
            text = say("The directory says {count} bytes; the record's own header says {own}.", count=entry.size, own=size)
            self._fault(text, entry, unnoticed=True)
        if entry.flags & 0x61 or entry.method not in (0, 8):
            text = say("This record is said to be encrypted, or compressed in a way that torch does not know.")
            self._fault(text, entry)
        return int(entry.offset) + 30 + int(name) + int(extra)

    def record(self, entry: ZipEntry) -> Optional[FileRange]:
        """Return a stored record as a source."""
        start = self.starts.get(entry.name)
        return None if start is None else self.source.part(start, entry.packed)

    def small(self, entry: ZipEntry, limit: int) -> bytes:
        """Return the bytes of a record, inflated; more than the limit are not inflated."""
        file_range = self.record(entry)
        if file_range is None:
            raise BrokenError(say("This record is not there."), entry.name, entry.offset)
        if entry.method == 0:
            return file_range.read(0, min(limit, entry.size))
        if entry.method != 8:
            text = say("This record is compressed by a method that torch does not know.")
            raise BrokenError(text, entry.name, entry.offset)
        return b"".join(_inflated(file_range, entry, limit))

    def check(self, entry: ZipEntry) -> None:
        """Read all of a record and compare its checksum; a difference is a fault that torch.load does not see."""
        file_range = self.record(entry)
        if file_range is None:
            return
        total = 0
        try:
            for part in _inflated(file_range, entry, entry.size + 1) if entry.method == 8 else file_range.blocks(0, entry.packed):
                total = zlib.crc32(part, total)
        except BrokenError as exc:
            self.faults.append(exc.fault)
            return
        if entry.method in (0, 8) and total != entry.crc:
            text = say(
                "The bytes of this record have changed since it was written (CRC {crc:08x}, written as {written:08x}).",
                crc=total,
                written=entry.crc,
            )
            self._fault(text, entry, unnoticed=True)


def _inflated(file_range: FileRange, entry: ZipEntry, limit: int) -> Iterator[bytes]:
    """Yield the inflated bytes in parts, and stop at the limit."""
    engine = zlib.decompressobj(-15)
    total = 0
    try:
        for part in file_range.blocks(0, file_range.size):
            left, full = part, False
            while (left or full) and not engine.eof:
                inflated = engine.decompress(left, _PART)
                # If the part is full, there may be more without further input.
                left, full = engine.unconsumed_tail, len(inflated) == _PART
                total += len(inflated)
                yield inflated
                if total >= limit:
                    return
    except zlib.error as exc:
        text = say("This record cannot be inflated: {why}.", why=quoted(exc))
        raise BrokenError(text, entry.name, entry.offset) from exc
