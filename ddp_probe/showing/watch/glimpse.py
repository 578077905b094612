"""Reads the end of a ledger: header, texts, phases and the last records. A thousand ledgers of 250 KB each are read in a fraction of a second.

What is read is put together as a ledger with a smaller ring, so that the one parser decides what is believed.
"""

import os
from typing import Dict, List, NamedTuple, Optional, Tuple

from ddp_probe.reading import rank_ledger, whole_ledger
from ddp_probe.reading.rank_ledger import RankLedger
from ddp_probe.shared import ledger_schema as schema

KEPT = 32
"""How many of the last records are read; a power of two."""

_HEADER = [field.name for field in schema.HEADER]


class _Known(NamedTuple):
    """A ledger as it was read last, and whether the file was at rest then."""

    head: bytes
    found: whole_ledger.Ledger
    at_rest: bool
    end: bytes  # As a ledger with a smaller ring; empty if the whole file was read.


class Glimpses:
    """Reads ledgers again and again; a file that has not moved between two looks is not parsed a third time."""

    def __init__(self) -> None:
        self._known: Dict[str, _Known] = {}
        self._kept: Dict[str, Tuple[bytes, RankLedger]] = {}

    def of(self, path: str) -> whole_ledger.Ledger:
        """Return the header, groups, phases, sums, steps and last records of a ledger."""
        known = self._known.get(path)
        try:
            with open(path, "rb", buffering=0) as file:
                head = os.pread(file.fileno(), schema.HEADER_BYTES, 0)
                same = known is not None and known.head == head
                if known is not None and same and known.at_rest:
                    return known.found
                end, before = _end(file.fileno(), head)
                found = whole_ledger.parse(end, path, before) if end else whole_ledger.read(path, KEPT)
        except OSError as exc:
            return whole_ledger.Ledger(path, problem="The file cannot be read: %s." % (exc.strerror or type(exc).__name__))
        self._known[path] = _Known(head, found, same, end)
        return found

    def kept(self, path: str, whole: bool) -> RankLedger:
        """Return what is kept of a ledger of which there was a glimpse: of all its records, or of the last ones."""
        known = self._known.get(path)
        head, end = (known.head, known.end) if known is not None else (b"", b"")
        if self._kept.get(path, (b"",))[0] != head or not head:
            self._kept[path] = head, rank_ledger.read(path, None if whole or not end else end)
        return self._kept[path][1]


def _end(file: int, head: bytes) -> Tuple[bytes, Optional[bytes]]:
    """Return the end of the file, and an earlier reading if it has changed since; nothing if its header is not as expected."""
    areas = _Areas.of(file, head)
    if areas is None:
        return b"", None
    before, data = areas.image(), areas.image()
    return data, None if before == data else before


class _Areas:
    """The places of a file's areas, and the number of its newest record."""

    def __init__(self, file: int, head: bytes, order: str, fields: Dict[str, int]) -> None:
        self._file = file
        self._head = head
        self._order = "big" if order == ">" else "little"
        self._texts_at, self._texts = fields["header_size"], -(-fields["text_used"] // 8) * 8
        at = schema.places(fields)
        self._phases_at, self._records_at = at.phases, at.records
        self._size, self._count = fields["record_size"], fields["records"]
        self.end = at.end
        self._newest = self._last_record()

    @classmethod
    def of(cls, file: int, head: bytes) -> "Optional[_Areas]":
        """Return the areas, or None for a header that is not one of this version with all of its areas there."""
        order = {schema.BYTE_ORDER.to_bytes(4, "little"): "<", schema.BYTE_ORDER.to_bytes(4, "big"): ">"}.get(head[12:16], "")
        if head[:8] != schema.MAGIC or not order or len(head) < schema.HEADER_BYTES:
            return None
        fields = dict(zip(_HEADER, schema.layout(schema.HEADER, order).unpack_from(head)))
        if not _usual(fields):
            return None
        areas = cls(file, head, order, fields)
        return areas if areas.end <= os.fstat(file).st_size else None

    def image(self) -> bytes:
        """Return the bytes of a ledger that holds the last records alone."""
        return b"".join((self._small_header(), os.pread(self._file, self._texts, self._texts_at), self._rows(), self._last_records()))

    def _small_header(self) -> bytes:
        head = bytearray(self._head)
        for name, value in (("text_size", self._texts), ("records", KEPT)):
            at = schema.offset(schema.HEADER, name)
            head[at : at + 4] = value.to_bytes(4, "big" if self._order == "big" else "little")
        return bytes(head)

    def _rows(self) -> bytes:
        """Return the phases, the sums and the steps."""
        return os.pread(self._file, self._records_at - self._phases_at, self._phases_at)

    def _last_records(self) -> bytes:
        """Return the last records, each at the place that it has in the smaller ring."""
        first = max(0, self._newest - KEPT + 1)
        begin = first % self._count
        whole = min(KEPT, self._count - begin)
        data = self._records(begin, whole) + self._records(0, KEPT - whole)
        turn = (KEPT - first % KEPT) % KEPT * self._size
        return data[turn:] + data[:turn]

    def _records(self, begin: int, count: int) -> bytes:
        return os.pread(self._file, count * self._size, self._records_at + begin * self._size) if count else b""

    def _last_record(self) -> int:
        """Return the number of the newest record: places of the present round hold consecutive numbers, the rest older ones."""
        start = self._number(0)
        low, high = 0, self._count - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._number(middle) == start + middle else (low, middle - 1)
        return start + low

    def _number(self, place: int) -> int:
        word = os.pread(self._file, 8, self._records_at + place * self._size)
        return int.from_bytes(word, "big" if self._order == "big" else "little")


def _usual(fields: Dict[str, int]) -> bool:
    """Return whether the areas are laid out as this version writes them, so that a part of the file can be read."""
    sizes: List[bool] = [
        fields["version"] in schema.READS,
        fields["header_size"] == schema.HEADER_BYTES,
        fields["text_used"] <= fields["text_size"] <= 1 << 24,
        fields["phase_size"] == schema.layout(schema.PHASE).size,
        max(fields[name] for name in ("phases", "sums", "steps")) <= 1 << 10,
        fields["sum_size"] in (0, schema.SIZES["sum_size"]),
        fields["step_size"] in (0, schema.SIZES["step_size"]),
        fields["record_size"] == schema.layout(schema.RECORD).size,
        fields["records"] >= KEPT and fields["records"] & (fields["records"] - 1) == 0,
    ]
    return all(sizes)
