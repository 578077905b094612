"""The layout of a ledger as JSON, for programs in other languages that read one; ddp_probe/shared/ledger_schema.py declares it."""

import struct
from typing import Any, Dict, NamedTuple, Tuple

from ddp_probe.shared import ledger_schema


class Area(NamedTuple):
    """A part of the file: its name, its place, and the fields of each of its entries."""

    name: str
    doc: str
    fields: Tuple[ledger_schema.Field, ...]


AREAS: Tuple[Area, ...] = (
    Area("header", "At byte 0.", ledger_schema.HEADER),
    Area("text", "Entries one after another, each followed by its bytes; each text is written once and has a number.", ledger_schema.TEXT),
    Area("phase", "A table with one row for each kind of phase.", ledger_schema.PHASE),
    Area(
        "sum",
        "A table with one row for each operation, group and line of the job. It is written with the file, a few times a second.",
        ledger_schema.SUM,
    ),
    Area(
        "step",
        "A ring: step n lies in place n modulo the number of steps. A step is the time from the end of one backward pass to the end of the next.",
        ledger_schema.STEP,
    ),
    Area("record", "A ring: record n lies in place n modulo the number of records.", ledger_schema.RECORD),
)
"""In the order of the file."""

CODES: Dict[str, Tuple[ledger_schema.Code, ...]] = {
    "operations": ledger_schema.OPERATIONS,
    "phases": ledger_schema.PHASES,
    "states": ledger_schema.STATES,
    "flags": ledger_schema.FLAGS,
    "kinds of text": ledger_schema.TEXTS,
}
_TYPES = {"H": "uint16", "I": "uint32", "Q": "uint64", "i": "int32", "s": "bytes"}


def as_json() -> Dict[str, Any]:
    """Return the layout."""
    return {
        "version": ledger_schema.VERSION,
        "suffix": ledger_schema.SUFFIX,
        "magic": ledger_schema.MAGIC.decode("ascii"),
        "byte_order": "That of the process that writes: byte_order in the header is 0x%08x." % ledger_schema.BYTE_ORDER,
        "sizes": {
            "doc": "As this version writes them. A reader takes them from the header.",
            **{name: ledger_schema.SIZES[name] for name in ("header_size", "text_size", "phases", "sums", "steps", "records")},
        },
        "areas": [_area(area) for area in AREAS],
        "codes": {name: [one._asdict() for one in codes] for name, codes in CODES.items()},
    }


def _area(area: Area) -> Dict[str, Any]:
    fields = [
        {
            "name": field.name,
            "at": ledger_schema.offset(area.fields, field.name),
            "size": struct.calcsize("=" + field.code),
            "type": _TYPES[field.code[-1]],
            "doc": field.doc,
        }
        for field in area.fields
    ]
    return {"name": area.name, "doc": area.doc, "size": ledger_schema.layout(area.fields).size, "fields": fields}
