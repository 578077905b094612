"""The file of a ledger: reads its bytes, and gives the same as lines of JSON and its layout for programs in other languages."""

import json
import os
import struct
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe.shared import ledger_codec as codec
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.ledger_codec import LedgerBytes, NamedRow
from ddp_probe.shared.regular_files import open_descriptor
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

_MOST_BYTES = 1 << 28
_FEW = (64, 256, 1024)  # If the ring ends before one of these, that many records are read.
_EMPTY = 32  # The ring ends where this many places were never written: fewer threads are between two stores at one time.
_WRITTEN_OVER = (schema.PHASE_AREA, schema.STEP_AREA, schema.PASS_AREA, schema.RECORD_AREA)
"""The areas in which the last field of a row repeats the first."""


class Reading(NamedTuple):
    """The bytes of a file; those of an earlier reading, or None if nothing has changed in between; how many at the end are left out."""

    data: bytes
    before: Optional[bytes] = None
    left_out: int = 0


def read(name: str) -> Reading:
    """Read a file twice."""
    file = open_descriptor(name)
    try:
        size = min(os.fstat(file).st_size, _MOST_BYTES)  # A buffer of the most bytes takes longer than the reading.
        end = _end(file, size)
        before, data = os.pread(file, end, 0), os.pread(file, end, 0)
    finally:
        os.close(file)
    return Reading(data, None if before == data else before, size - end)


def _end(file: int, size: int) -> int:
    """Return where to stop: after some records if the ring ends before, at the end if it does not, or if the file has another layout."""
    file_head = codec.opened(os.pread(file, schema.HEADER_BYTES, 0))
    if file_head is None:
        return size
    head, records_at, record = file_head.head, file_head.at.records, file_head.codec(schema.RECORD_AREA).size
    if head["version"] not in schema.READS or head["record_size"] != record or records_at + head["records"] * record > size:
        return size
    for count in _FEW:
        end = records_at + count * record
        if count < head["records"] and not os.pread(file, _EMPTY * record, end - _EMPTY * record).strip(b"\0"):
            return end
    return size


def settled(name: str) -> bytes:
    """Return a whole file without the rows that its process was writing."""
    return quiet(read(name))


def quiet(reading: Reading) -> bytes:
    """Return the bytes in which the rows are empty whose last field differs between the two readings."""
    data, before = bytearray(reading.data + bytes(reading.left_out)), reading.before
    file = codec.opened(reading.data)
    if before is None or file is None or len(data) < schema.HEADER_BYTES:
        return bytes(data)
    for area in _WRITTEN_OVER:
        begin, size = file.begin(area), file.head[area.name + "_size"]
        end = begin + size * file.head[area.rows]
        for row in range(begin, min(end, len(before)), max(size, 8)):
            if before[row + size - 8 : row + size] != data[row + size - 8 : row + size]:
                data[row : row + size] = bytes(size)
    return bytes(data)


def as_of(data: bytes, until: float) -> bytes:
    """Return the bytes as they were at this time, in seconds since 1970: later calls are gone, and what ended later is still open."""
    file = codec.opened(data)
    if file is None:
        return data
    changed, head = bytearray(data), file.head
    end = head["mono_ns"] + int(until * 1e9) - head["wall_ns"]
    moved = [head["mono_ns"]]
    for area in (schema.PHASE_AREA, schema.PASS_AREA, schema.RECORD_AREA):
        rows, begin = file.codec(area), file.begin(area)
        stop = min(begin + head[area.rows] * head[area.name + "_size"], len(data) - rows.size + 1)
        for place in range(begin, stop, rows.size):
            if changed[place : place + 8] == bytes(8):
                continue
            row_then = _row_as_of(rows.read(changed, place), end)
            changed[place : place + rows.size] = rows.packed(row_then)
            moved += [time for time in (row_then.get("entered_ns", 0), row_then.get("waited_ns", 0), row_then.get("left", 0) >> 2) if time]
    file.header.write_field(changed, 0, "moved_ns", max(moved))
    return bytes(changed)


def _row_as_of(row: NamedRow, end: int) -> NamedRow:
    """Return a phase, a pass or a record as it was at a time; nothing if it began later."""
    if row["entered_ns"] > end:
        if row.get("count", 0) < 2 or "index" in row:
            return {}
        row.update(count=row["count"] - 1, entered_ns=end, left=end << 2 | schema.RETURNED)
    if row["left"] >> 2 > end:
        is_issued = row["flags"] & schema.ASYNC and row["left"] & 3 != schema.OPEN
        row["left"] = row["entered_ns"] << 2 if is_issued else 0
    if row.get("waited_ns", 0) > end:
        row["waited_ns"] = 0
    return row


# A ledger's file as lines of JSON, which are small, can be searched, and can be shared once names are removed.
#
# The lines hold all that the file holds: its header, then each text, phase, sum, step and record, with the names of shared/ledger_schema.py. A
# field with its usual value is left out, an operation or a kind has its name, and ``left`` is two fields, ``left_ns`` and ``state``. The first line
# counts the others.

_START = b'{"ledger":'
_USUAL: Dict[str, NamedRow] = {"record": {"peer": -1}}
"""Per area the fields whose usual value is not 0."""
_FIXED = ("magic", "version", "byte_order", "header_size", "phase_size", "record_size", "sum_size", "step_size", "pass_size")
_OPERATIONS, _PHASES = schema.names(schema.OPERATIONS), schema.names(schema.PHASES)
_TEXTS, _STATES = schema.names(schema.TEXTS), schema.names(schema.STATES)
_OPERATION_CODES, _PHASE_CODES = schema.codes(schema.OPERATIONS), schema.codes(schema.PHASES)
_TEXT_CODES, _STATE_CODES = schema.codes(schema.TEXTS), schema.codes(schema.STATES)
_ROW_AREAS = [area for area in schema.AREAS if area.rows]


def is_text(data: bytes) -> bool:
    """Return whether these bytes are a ledger as text."""
    return data.startswith(_START)


def as_lines(data: bytes) -> str:
    """Return the ledger of a process that has ended as text; a ValueError says that this is not one, or of another version."""
    file = codec.opened(data)
    if file is None:
        raise ValueError("This is not a ledger of ddp_probe.")
    head = file.head
    usual = _usual(head["version"])
    if any(head[name] != usual.get(name) for name in _FIXED):
        raise ValueError("The ledger is of another version.")
    rows = list(_texts(file))
    for area in _ROW_AREAS:
        rows += _lines(file, area)
    head["missing"] = max(0, file.at.end - len(data))
    first = {"ledger": head["version"], "lines": len(rows), **_short(_opened(head), usual)}
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in (first, *rows))


def of_lines(text: bytes) -> bytes:
    """Return the bytes of the file that this text is of; a ValueError names a line that is not valid."""
    rows: List[NamedRow] = []
    for number, line in enumerate(text.split(b"\n")[:-1], 1):
        try:
            rows.append(dict(json.loads(line)))
        except (ValueError, TypeError, RecursionError):
            raise ValueError(say("Line {number} of the ledger is not valid.", number=number)) from None
    try:
        return _packed(rows)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, struct.error) as exc:
        raise ValueError(say("The text of the ledger is not valid: {reason}.", reason=quoted(exc))) from None


def _usual(version: Any) -> NamedRow:
    """Return the header of a version; empty if it is not known."""
    if version not in schema.READS:
        return {}
    usual = {**codec.NEW, "boot": b"", "version": version}
    for area in _ROW_AREAS:
        usual[area.name + "_size"] = codec.rows_of(area.fields, "<", version).size
        if area.since > version:
            usual[area.name + "_size"] = usual[area.rows] = 0
    return usual


def _packed(rows: List[NamedRow]) -> bytes:
    head = {**_usual(rows[0]["ledger"]), **rows[0]}
    if head["ledger"] not in schema.READS:
        raise ValueError(
            say(
                "it is of version {version}, and this ddp_probe reads versions up to {newest}",
                version=head["ledger"],
                newest=schema.VERSION,
            )
        )
    if head["lines"] != len(rows) - 1:
        raise ValueError(
            say(
                "it has {count} lines after the first, and says {said}",
                count=len(rows) - 1,
                said=head["lines"],
            )
        )
    texts = b"".join(_text_bytes(row) for row in rows if "text" in row)
    head.update(text_used=len(texts), text_size=max(head["text_size"], len(texts)), boot=bytes.fromhex(head["boot"] or ""))
    bounds = {area.rows: codec.SIZES[area.rows] for area in _ROW_AREAS}
    for name, most in {**bounds, "text_size": max(schema.TEXT_BYTES, len(texts))}.items():
        if not 0 <= head[name] <= most:
            raise ValueError(
                say(
                    "{name} is {count}, and this ddp_probe writes at most {most}",
                    name=name,
                    count=head[name],
                    most=most,
                )
            )
    places = codec.places(head)
    data = bytearray(places.end)
    codec.rows_of(schema.HEADER, "<").write(data, 0, head)
    data[schema.HEADER_BYTES : schema.HEADER_BYTES + len(texts)] = texts
    for row in rows:
        area = next((area for area in reversed(_ROW_AREAS) if area.name in row), None)  # A pass names its phase, too.
        if area is not None:
            _place(data, row, area, head, getattr(places, area.rows))
    return bytes(data[: len(data) - head.get("missing", 0)])


def _place(data: bytearray, row: NamedRow, area: schema.Area, head: NamedRow, begin: int) -> None:
    """Write a row where it belongs."""
    rows, name = codec.rows_of(area.fields, "<", head["ledger"]), row[area.name]
    first, last = rows.names[0], rows.names[-1]
    whole = {**_USUAL.get(area.name, {}), **row, "left": row.get("left_ns", 0) << 2 | _code(_STATE_CODES, row.get("state", "open"))}
    if area.is_ring:
        whole[first] = name
        place = row.get("place", name % head[area.rows])
    else:
        place = _PHASE_CODES[name] - 1 if name in _PHASE_CODES else int(name)
    if last.startswith(first):
        whole.setdefault(last, whole[first])
    for field, codes in (("op", _OPERATION_CODES), ("phase", _PHASE_CODES)):
        if field in whole:
            whole[field] = _code(codes, whole[field])
    rows.write(data, begin + place * rows.size, whole)


def _code(codes: Dict[str, int], name: Any) -> int:
    return int(codes.get(name, name))


def _text_bytes(row: NamedRow) -> bytes:
    return codec.text_entry(row["text"], _code(_TEXT_CODES, row["kind"]), str(row["is"]).encode("utf-8", "surrogateescape"), "<")


def _opened(head: NamedRow) -> NamedRow:
    return {name: value.hex() if name == "boot" else value for name, value in head.items() if name not in (*_FIXED, "text_used")}


def _short(row: NamedRow, usual: NamedRow) -> NamedRow:
    """Leave out what has its usual value. A rank of 0 is written: nobody would infer it from its absence."""
    return {name: value for name, value in row.items() if value != usual.get(name, 0) or name in ("rank", "text")}


def _texts(file: LedgerBytes) -> Iterator[NamedRow]:
    for number, kind, text in file.texts():
        yield {"text": number, "kind": _TEXTS.get(kind, kind), "is": text.decode("utf-8", "surrogateescape")}


def _lines(file: LedgerBytes, area: schema.Area) -> List[NamedRow]:
    """Return the rows of an area in which anything was written; those of a ring in the order of their numbers."""
    lines: List[Tuple[int, NamedRow]] = []
    for place, values in enumerate(file.rows(area)):
        if any(values):
            row = file.codec(area).named(values)
            number = row.pop("index") if area.is_ring else place
            lines.append((number, _line(row, area, number, place, file.head[area.rows])))
    return [line for _, line in sorted(lines, key=lambda numbered: numbered[0])]


def _line(row: NamedRow, area: schema.Area, number: int, place: int, count: int) -> NamedRow:
    """Return a row as its line has it; `number` is its own in a ring, and its place in a table."""
    begin: NamedRow = {area.name: number}
    end: NamedRow = {}
    if area.is_ring:
        end = {"place": place} if number % count != place else {}
        again = row.pop("index_again")
        if again != number:
            end["index_again"] = again
    elif area.name == "phase":
        begin, again = {"phase": _PHASES.get(place + 1, place)}, row.pop("stamp_again")
        end = {"stamp": row["stamp"]}
        if again != row["stamp"]:
            end["stamp_again"] = again
    if "left" in row:
        left = row.pop("left")
        row.update(left_ns=left >> 2, state=_STATES[left & 3])
    for field, names in (("op", _OPERATIONS), ("phase", _PHASES)):
        if field in row:
            row[field] = names.get(row[field], row[field])
    return {**begin, **_short(row, _USUAL.get(area.name, {})), **end}


# The layout of a ledger as JSON, for programs in other languages that read one; ddp_probe/shared/ledger_schema.py declares it.

CODES: Dict[str, Tuple[schema.Code, ...]] = {
    "operations": schema.OPERATIONS,
    "phases": schema.PHASES,
    "states": schema.STATES,
    "flags": schema.FLAGS,
    "kinds of text": schema.TEXTS,
}
_TYPES = {"H": "uint16", "I": "uint32", "Q": "uint64", "i": "int32", "s": "bytes"}


def layout_as_json() -> Dict[str, Any]:
    """Return the layout."""
    return {
        "version": schema.VERSION,
        "suffix": schema.SUFFIX,
        "magic": schema.MAGIC.decode("ascii"),
        "byte_order": "That of the process that writes: byte_order in the header is 0x%08x." % schema.BYTE_ORDER,
        "sizes": {
            "doc": "As this version writes them. A reader takes them from the header.",
            **{name: codec.SIZES[name] for name in ("header_size", "text_size", "phases", "sums", "steps", "passes", "records")},
        },
        "areas": [_area(area) for area in schema.AREAS],
        "codes": {name: [code._asdict() for code in codes] for name, codes in CODES.items()},
    }


def _area(area: schema.Area) -> Dict[str, Any]:
    rows = codec.rows_of(area.fields, "<")
    fields = [
        {
            "name": field.name,
            "at": rows.offset(field.name),
            "size": rows.single(field.name).size,
            "type": _TYPES[field.code[-1]],
            "doc": field.doc,
        }
        for field in area.fields
    ]
    return {"name": area.name, "doc": area.doc, "size": rows.size, "fields": fields}
