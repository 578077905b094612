"""Reads the bytes of a ledger, twice, and leaves out what was never written: most text areas and most rings are nearly empty.

What is left out in front of the records is taken off the size of the text area in the header, so that the parser needs to know nothing of it.
"""

import os
from functools import lru_cache
from typing import Dict, List, NamedTuple, Optional, Tuple

from ddp_probe import ledger_schema as schema

_MOST_BYTES = 1 << 28
_FIRST = 256  # Records that are read first.
_EMPTY = 64  # The ring ends where this many places were never written: fewer threads are between two stores at one time.
_NAMES = [field.name for field in schema.HEADER]
_TEXT_SIZE = schema.offset(schema.HEADER, "text_size")
_layout = lru_cache(maxsize=16)(schema.layout)


class Reading(NamedTuple):
    """The bytes of a file; those of an earlier reading, or None if nothing has changed in between; how many at the end are left out."""

    data: bytes
    before: Optional[bytes] = None
    left_out: int = 0


def read(name: str) -> Reading:
    """Read a file twice; a file that is not laid out as this version writes it is read as a whole."""
    with open(name, "rb", buffering=0) as file:
        number = file.fileno()
        size = min(os.fstat(number).st_size, _MOST_BYTES)  # A buffer of the most bytes takes longer than the reading.
        parts, left_out = _parts(number, size) or ([(0, size)], 0)
        before, data = _joined(number, parts), _joined(number, parts)
    return Reading(data, None if before == data else before, left_out)


def _joined(file: int, parts: List[Tuple[int, int]]) -> bytes:
    """Return the parts as one ledger."""
    if len(parts) == 1:
        return os.pread(file, parts[0][1], 0)
    head, *rest = (os.pread(file, size, at) for at, size in parts)
    texts = parts[1][1].to_bytes(4, "little" if head[12:16] == schema.BYTE_ORDER.to_bytes(4, "little") else "big")
    return b"".join((head[:_TEXT_SIZE], texts, head[_TEXT_SIZE + 4 :], *rest))


def _parts(file: int, size: int) -> Optional[Tuple[List[Tuple[int, int]], int]]:
    """Return where the written parts are, and how many bytes come after them; None for a file that has another layout or is cut."""
    head = os.pread(file, schema.HEADER_BYTES, 0)
    order = {schema.BYTE_ORDER.to_bytes(4, "little"): "<", schema.BYTE_ORDER.to_bytes(4, "big"): ">"}.get(head[12:16], "")
    if head[:8] != schema.MAGIC or not order or len(head) < schema.HEADER_BYTES:
        return None
    fields = dict(zip(_NAMES, _layout(schema.HEADER, order).unpack_from(head)))
    phases_at = schema.HEADER_BYTES + fields["text_size"]
    records_at = phases_at + fields["phases"] * fields["phase_size"]
    ring = fields["records"] * fields["record_size"]
    if not _usual(fields) or records_at + ring > size:
        return None
    texts, used = -(-fields["text_used"] // 8) * 8, _ring(file, records_at, ring, fields["record_size"])
    parts = [(0, schema.HEADER_BYTES), (schema.HEADER_BYTES, texts), (phases_at, records_at - phases_at), (records_at, used)]
    return parts, size - records_at - used


def _usual(fields: Dict[str, int]) -> bool:
    """Tell whether the areas are laid out as this version writes them."""
    return (
        fields["version"] == schema.VERSION
        and fields["header_size"] == schema.HEADER_BYTES
        and fields["text_used"] <= fields["text_size"] <= 1 << 24
        and fields["text_size"] % 8 == 0
        and fields["record_size"] == _layout(schema.RECORD).size
    )


def _ring(file: int, at: int, size: int, record: int) -> int:
    """Return how many bytes of the ring have to be read: it is filled from its first place on."""
    if size <= _FIRST * record:
        return size
    end = os.pread(file, _EMPTY * record, at + (_FIRST - _EMPTY) * record)
    return size if end.strip(b"\0") else _FIRST * record
