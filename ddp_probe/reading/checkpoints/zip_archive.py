"""Checks the records of a zip archive: where they are, that they do not overlap, and their checksums. zlib inflates them, up to a limit."""

import struct
import zlib
from typing import Dict, Iterator, List, Optional

from ddp_probe.reading.checkpoints.model import BrokenError, Damage
from ddp_probe.reading.checkpoints.source import FileRange
from ddp_probe.reading.checkpoints.zip_directory import MAX32, ZipDirectory, ZipEntry

_HEADER = b"PK\x03\x04"
_PART = 1 << 20
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
                self._fault("Two records have this name; torch.load reads one of them.", entry, unnoticed=True)
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
                self._fault("This record begins within the record %s." % last.name, entry, unnoticed=True)
            if start + entry.packed > self.directory.offset:
                outside = start + entry.packed > self.source.size
                self._fault("This record is said to end at byte %d, behind the directory." % (start + entry.packed), entry, unnoticed=not outside)
            ends, last = start + entry.packed, entry

    def _start(self, entry: ZipEntry) -> Optional[int]:
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
        elif not flags & 8 and (method != entry.method or ((size, packed) != (entry.size, entry.packed) and MAX32 not in (size, packed))):
            self._fault("The directory says %d bytes; the record's own header says %d." % (entry.size, size), entry, unnoticed=True)
        if entry.flags & 0x61 or entry.method not in (0, 8):
            self._fault("This record is said to be encrypted, or compressed in a way that torch does not know.", entry)
        return int(entry.offset) + 30 + int(name) + int(extra)

    def record(self, entry: ZipEntry) -> Optional[FileRange]:
        """Return a stored record as a source."""
        start = self.starts.get(entry.name)
        return None if start is None else self.source.part(start, entry.packed)

    def small(self, entry: ZipEntry, limit: int) -> bytes:
        """Return the bytes of a record, inflated; more than the limit are not inflated."""
        found = self.record(entry)
        if found is None:
            raise BrokenError("This record is not there.", entry.name, entry.offset)
        if entry.method == 0:
            return found.read(0, min(limit, entry.size))
        if entry.method != 8:
            raise BrokenError("This record is compressed by a method that torch does not know.", entry.name, entry.offset)
        return b"".join(_inflated(found, entry, limit))

    def check(self, entry: ZipEntry) -> None:
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


def _inflated(found: FileRange, entry: ZipEntry, limit: int) -> Iterator[bytes]:
    """Yield the inflated bytes in parts, and stop at the limit."""
    engine = zlib.decompressobj(-15)
    total = 0
    try:
        for part in found.blocks(0, found.size):
            left, full = part, False
            while (left or full) and not engine.eof:
                made = engine.decompress(left, _PART)
                left, full = engine.unconsumed_tail, len(made) == _PART  # If it is full, there may be more without further input.
                total += len(made)
                yield made
                if total >= limit:
                    return
    except zlib.error as exc:
        raise BrokenError("This record cannot be inflated: %s." % exc, entry.name, entry.offset) from exc
