"""Packs and reads the bytes of a ledger by the names of their fields, in the byte order and the version of the file; standard library only.

The process that writes, its launcher and every reader use this and nothing else, so a field is declared once, in ledger_schema.py. What runs
before and after each call packs its values by position, because names would cost it time; tests/ledger/test_ledger_codec.py reads them back by name.
"""

import struct
from functools import lru_cache
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.ledger_schema import Area, Field

_PAGE = 1 << 12
_ORDERS = {schema.BYTE_ORDER.to_bytes(4, "little"): "<", schema.BYTE_ORDER.to_bytes(4, "big"): ">"}
Values = Tuple[Any, ...]
"""A row as the file has it: the values in the order of their fields."""
NamedRow = Dict[str, Any]
"""The same by the names of the fields."""


class RowCodec:
    """Packs and reads the rows of one area. `pack_into`, `unpack_from` and `iter_unpack` are those of struct, for the loops that must be fast."""

    def __init__(self, fields: Sequence[Field], order: str = "@") -> None:
        row = struct.Struct(order + "".join([field.code for field in fields]))
        self.names = [field.name for field in fields]
        self.size = row.size
        self.pack_into, self.unpack_from, self.iter_unpack = row.pack_into, row.unpack_from, row.iter_unpack
        self._pack = row.pack
        self._empty: NamedRow = {field.name: b"" if field.code.endswith("s") else 0 for field in fields}
        self._singles = {field.name: struct.Struct(order + field.code) for field in fields}
        self._offsets: Dict[str, int] = {}
        end = 0
        for field in fields:
            self._offsets[field.name] = end
            end += self._singles[field.name].size

    def position(self, name: str) -> int:
        """Return which of the values of a row is this field."""
        return self.names.index(name)

    def offset(self, name: str) -> int:
        """Return the bytes before a field."""
        return self._offsets[name]

    def word(self, name: str) -> int:
        """Return the words of eight bytes before a field."""
        return self._offsets[name] // 8

    def single(self, name: str) -> struct.Struct:
        """Return what packs this field alone."""
        return self._singles[name]

    def named(self, values: Values) -> NamedRow:
        """Return the values of a row by the names of their fields."""
        return dict(zip(self.names, values))

    def read(self, data: Any, at: int = 0) -> NamedRow:
        """Return the row at a place."""
        return dict(zip(self.names, self.unpack_from(data, at)))

    def packed(self, row: Mapping[str, Any]) -> bytes:
        """Return the bytes of a row; fields that it does not name are 0."""
        return self._pack(*[row.get(name, empty) for name, empty in self._empty.items()])

    def write(self, data: Any, at: int, row: Mapping[str, Any]) -> None:
        """Write a row at a place."""
        self.pack_into(data, at, *[row.get(name, empty) for name, empty in self._empty.items()])

    def read_field(self, data: Any, at: int, name: str) -> int:
        """Return a number of the row at a place."""
        return int(self._singles[name].unpack_from(data, at + self._offsets[name])[0])

    def write_field(self, data: Any, at: int, name: str, value: int) -> None:
        """Write a number of the row at a place."""
        self._singles[name].pack_into(data, at + self._offsets[name], value)


HEADER, TEXT, RECORD, PHASE = RowCodec(schema.HEADER), RowCodec(schema.TEXT), RowCodec(schema.RECORD), RowCodec(schema.PHASE)
PASS, SUM, STEP = RowCodec(schema.PASS), RowCodec(schema.SUM), RowCodec(schema.STEP)
"""What this version writes, in the byte order of this process."""

SIZES: Dict[str, int] = {
    "header_size": schema.HEADER_BYTES,
    "text_size": schema.TEXT_BYTES,
    "phase_size": PHASE.size,
    "phases": schema.PHASE_ROWS,
    "record_size": RECORD.size,
    "records": schema.RECORDS,
    "sum_size": SUM.size,
    "sums": schema.SUMS,
    "step_size": STEP.size,
    "steps": schema.STEPS,
    "pass_size": PASS.size,
    "passes": schema.PASSES,
}
"""The fields of the header that say how large each area is, as this version writes them."""

NEW: NamedRow = {"magic": schema.MAGIC, "version": schema.VERSION, "byte_order": schema.BYTE_ORDER, **SIZES}
"""What the headers of all files say that this version writes."""


class Offsets(NamedTuple):
    """The offsets at which the areas of a file begin, and its length."""

    phases: int
    sums: int
    steps: int
    passes: int
    records: int
    end: int


def places(head: Mapping[str, int]) -> Offsets:
    """Return where the areas of a file with this header begin."""
    begins = [head["header_size"] + head["text_size"]]
    for area in schema.AREAS:
        if area.rows:
            begins.append(begins[-1] + head[area.rows] * head[area.name + "_size"])
    return Offsets(*begins)


PLACES = places(SIZES)
"""The offsets of a file that this version writes."""


@lru_cache(maxsize=32)
def rows_of(fields: Tuple[Field, ...], order: str, version: int = schema.VERSION) -> RowCodec:
    """Return what reads these fields in a file of some byte order and version."""
    then = [field if field.since <= version else field._replace(code=field.once) for field in fields]
    return RowCodec([field for field in then if field.code], order)


def text_entry(number: int, kind: int, data: bytes, order: str = "@") -> bytes:
    """Return the bytes of a text, up to where the next one begins."""
    entry = rows_of(schema.TEXT, order).packed({"size": len(data), "kind": kind, "id": number})
    return entry + data + bytes(-len(data) % 8)


def texts(data: Any, begin: int, end: int, order: str = "@") -> Iterator[Tuple[int, int, bytes]]:
    """Yield number, kind and bytes of each text that lies between these places as a whole."""
    entry = rows_of(schema.TEXT, order)
    while begin + entry.size <= end:
        size, kind, number = entry.unpack_from(data, begin)
        begin += entry.size
        if begin + size > end:
            return
        yield number, kind, data[begin : begin + size]
        begin += -(-size // 8) * 8


def byte_order(data: bytes) -> str:
    """Return < or >, as the writer's mark says; empty if this is not a ledger."""
    at = HEADER.offset("byte_order")
    return _ORDERS.get(bytes(data[at : at + 4]), "") if data[: len(schema.MAGIC)] == schema.MAGIC else ""


class LedgerBytes:
    """The bytes of one file by area; nothing is taken for true that lies outside the bytes that are there.

    `before` is an earlier reading: the rows in which it has another last field were being written.
    """

    def __init__(self, data: bytes, before: Optional[bytes] = None) -> None:
        self.data = data
        self.order = byte_order(data)
        self._before = before
        self._used = _used(data)  # Most rings are not full: what was never written is not looked at.
        self.header = rows_of(schema.HEADER, self.order)
        self.head = self.header.read(data)
        self.at = places(self.head)

    def codec(self, area: Area) -> RowCodec:
        """Return what reads the rows of an area of this file."""
        return rows_of(area.fields, self.order, self.head["version"])

    def begin(self, area: Area) -> int:
        """Return where an area of rows begins."""
        return int(getattr(self.at, area.rows))

    def texts(self) -> Iterator[Tuple[int, int, bytes]]:
        """Yield number, kind and bytes of each text."""
        begin = self.head["header_size"]
        return texts(self.data, begin, min(begin + min(self.head["text_used"], self.head["text_size"]), len(self.data)), self.order)

    def rows(self, area: Area) -> Iterable[Values]:
        """Return the rows of an area that are there, without those at its end that were never written."""
        codec, begin, size = self.codec(area), self.begin(area), self.head[area.name + "_size"]
        if size < codec.size:
            return ()
        there = max(0, min(self.head[area.rows], (len(self.data) - begin) // size, -(-(self._used - begin) // size)))
        if size == codec.size:
            return codec.iter_unpack(memoryview(self.data)[begin : begin + there * size])
        return (codec.unpack_from(self.data, begin + place * size) for place in range(there))

    def ring(self, area: Area) -> Tuple[List[Values], int]:
        """Return the whole rows of a ring in order, with the fields of today, and how many places hold another thing."""
        whole, torn, count = [], 0, self.head[area.rows]
        for place, row in enumerate(self.rows(area)):
            number = row[0]
            if number != row[-1] or (number and number % count != place):
                torn += self._is_settled(area, place)
            elif number and (self._before is None or self._is_settled(area, place)):
                whole.append(row)
        return self._of_today(area, sorted(whole)), torn

    def table(self, area: Area) -> Iterator[Tuple[int, NamedRow]]:
        """Yield the whole rows of a table whose last field repeats the first, each with its place."""
        codec = self.codec(area)
        for place, row in enumerate(self.rows(area)):
            if 0 != row[0] == row[-1] and self._is_settled(area, place):
                yield place, codec.named(row)

    def _is_settled(self, area: Area, place: int) -> bool:
        """Tell whether a row was complete in the earlier reading."""
        end = self.begin(area) + place * self.head[area.name + "_size"] + self.codec(area).size
        return self._before is None or self._before[end - 8 : end] == self.data[end - 8 : end]

    def _of_today(self, area: Area, rows: List[Values]) -> List[Values]:
        names, today = self.codec(area).names, [field.name for field in area.fields]
        if names == today:
            return rows
        known = [names.index(name) if name in names else None for name in today]
        return [tuple([0 if at is None else row[at] for at in known]) for row in rows]


def opened(data: bytes) -> Optional[LedgerBytes]:
    """Return the bytes by area; None if they are not a ledger, or end inside its header."""
    return LedgerBytes(data) if byte_order(data) and len(data) >= HEADER.size else None


def _used(data: bytes) -> int:
    """Return from where on all bytes are zero, or somewhat later; several times as fast as bytes.rstrip."""
    low, high = 0, len(data)
    while high - low > _PAGE:
        middle = (low + high) // 2
        if data.startswith(bytes(high - middle), middle):
            high = middle
        else:
            low = middle
    return high
