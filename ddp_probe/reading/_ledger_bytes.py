"""Reads the bytes of a ledger, twice, and leaves out the end of its ring if that was never written: most rings are nearly empty."""

import os
import struct
from typing import Dict, NamedTuple, Optional

from ddp_probe.shared import ledger_schema as schema

_MOST_BYTES = 1 << 28
_FEW = (64, 256, 1024)  # If the ring ends before one of these, that many records are read.
_EMPTY = 32  # The ring ends where this many places were never written: fewer threads are between two stores at one time.
_ORDERS = {schema.BYTE_ORDER.to_bytes(4, "little"): "<", schema.BYTE_ORDER.to_bytes(4, "big"): ">"}
_NAMES = [field.name for field in schema.HEADER]
_LAYOUTS = {mark: schema.layout(schema.HEADER, order) for mark, order in _ORDERS.items()}
_RECORD = schema.layout(schema.RECORD).size


class Reading(NamedTuple):
    """The bytes of a file; those of an earlier reading, or None if nothing has changed in between; how many at the end are left out."""

    data: bytes
    before: Optional[bytes] = None
    left_out: int = 0


def read(name: str) -> Reading:
    """Read a file twice."""
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = min(os.fstat(file).st_size, _MOST_BYTES)  # A buffer of the most bytes takes longer than the reading.
        end = _end(file, size)
        before, data = os.pread(file, end, 0), os.pread(file, end, 0)
    finally:
        os.close(file)
    return Reading(data, None if before == data else before, size - end)


def _end(file: int, size: int) -> int:
    """Return where to stop: after some records if the ring ends before, at the end if it does not, or if the file has another layout."""
    head = os.pread(file, schema.HEADER_BYTES, 0)
    layout = _LAYOUTS.get(head[12:16])
    if head[:8] != schema.MAGIC or layout is None or len(head) < layout.size:
        return size
    fields = dict(zip(_NAMES, layout.unpack_from(head)))
    records_at = schema.places(fields).records
    if fields["version"] not in schema.READS or fields["record_size"] != _RECORD or records_at + fields["records"] * _RECORD > size:
        return size
    for count in _FEW:
        end = records_at + count * _RECORD
        if count < fields["records"] and not os.pread(file, _EMPTY * _RECORD, end - _EMPTY * _RECORD).strip(b"\0"):
            return end
    return size


def settled(name: str) -> bytes:
    """Return a whole file without the rows that its process was writing."""
    return quiet(read(name))


def quiet(found: Reading) -> bytes:
    """Return the bytes in which the rows are empty whose last field differs between the two readings."""
    data = bytearray(found.data + bytes(found.left_out))
    layout = _LAYOUTS.get(bytes(data[12:16]))
    if found.before is None or layout is None or len(data) < schema.HEADER_BYTES:
        return bytes(data)
    fields = dict(zip(_NAMES, layout.unpack_from(data)))
    at = schema.places(fields)
    for start, end, size in (
        (at.phases, at.sums, fields["phase_size"]),
        (at.steps, at.records, fields["step_size"]),
        (at.records, at.end, fields["record_size"]),
    ):
        for row in range(start, min(end, len(found.before)), max(size, 8)):
            if found.before[row + size - 8 : row + size] != data[row + size - 8 : row + size]:
                data[row : row + size] = bytes(size)
    return bytes(data)


def as_of(data: bytes, until: float) -> bytes:
    """Return the bytes as they were at this time, in seconds since 1970: later calls are gone, and what ended later is still open."""
    changed = bytearray(data)
    layout = _LAYOUTS.get(data[12:16])
    if data[:8] != schema.MAGIC or layout is None or len(data) < layout.size:
        return data
    head = dict(zip(_NAMES, layout.unpack_from(data)))
    at, order = schema.places(head), _ORDERS[data[12:16]]
    end = head["mono_ns"] + int(until * 1e9) - head["wall_ns"]
    moved = [head["mono_ns"]]
    for fields, start, stop in ((schema.PHASE, at.phases, at.sums), (schema.RECORD, at.records, at.end)):
        row = schema.layout(fields, order)
        names = [field.name for field in fields]
        for place in range(start, min(stop, len(data) - row.size + 1), row.size):
            if changed[place : place + 8] == bytes(8):
                continue
            found = _row_as_of(dict(zip(names, row.unpack_from(changed, place))), end)
            changed[place : place + row.size] = row.pack(*found.values()) if found else bytes(row.size)
            moved += [time for time in (found.get("entered_ns", 0), found.get("waited_ns", 0), found.get("left", 0) >> 2) if time]
    struct.pack_into(order + "Q", changed, schema.offset(schema.HEADER, "moved_ns"), max(moved))
    return bytes(changed)


def _row_as_of(row: Dict[str, int], end: int) -> Dict[str, int]:
    """Return a phase or a record as it was at a time; nothing if it began later."""
    if row["entered_ns"] > end:
        if row.get("count", 0) < 2:
            return {}
        row.update(count=row["count"] - 1, entered_ns=end, left=end << 2 | schema.RETURNED)
    if row["left"] >> 2 > end:
        is_issued = row["flags"] & schema.ASYNC and row["left"] & 3 != schema.OPEN
        row["left"] = row["entered_ns"] << 2 if is_issued else 0
    if row.get("waited_ns", 0) > end:
        row["waited_ns"] = 0
    return row
