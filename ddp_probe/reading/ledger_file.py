"""The file of a ledger: reads its bytes, and gives the same as lines of JSON and its layout for programs in other languages."""

import json
import os
import struct
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.shared import ledger_schema
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.shared.regular_files import open_descriptor

_MOST_BYTES = 1 << 28
_FEW = (64, 256, 1024)  # If the ring ends before one of these, that many records are read.
_EMPTY = 32  # The ring ends where this many places were never written: fewer threads are between two stores at one time.
_ORDERS = {schema.BYTE_ORDER.to_bytes(4, "little"): "<", schema.BYTE_ORDER.to_bytes(4, "big"): ">"}
_HEADER_NAMES = [field.name for field in schema.HEADER]
_HEADERS = {mark: schema.layout(schema.HEADER, order) for mark, order in _ORDERS.items()}
_RECORD_SIZE = schema.layout(schema.RECORD).size


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
    head = os.pread(file, schema.HEADER_BYTES, 0)
    layout = _HEADERS.get(head[12:16])
    if head[:8] != schema.MAGIC or layout is None or len(head) < layout.size:
        return size
    fields = dict(zip(_HEADER_NAMES, layout.unpack_from(head)))
    records_at = schema.places(fields).records
    if fields["version"] not in schema.READS or fields["record_size"] != _RECORD_SIZE or records_at + fields["records"] * _RECORD_SIZE > size:
        return size
    for count in _FEW:
        end = records_at + count * _RECORD_SIZE
        if count < fields["records"] and not os.pread(file, _EMPTY * _RECORD_SIZE, end - _EMPTY * _RECORD_SIZE).strip(b"\0"):
            return end
    return size


def settled(name: str) -> bytes:
    """Return a whole file without the rows that its process was writing."""
    return quiet(read(name))


def quiet(reading: Reading) -> bytes:
    """Return the bytes in which the rows are empty whose last field differs between the two readings."""
    data = bytearray(reading.data + bytes(reading.left_out))
    layout = _HEADERS.get(bytes(data[12:16]))
    if reading.before is None or layout is None or len(data) < schema.HEADER_BYTES:
        return bytes(data)
    fields = dict(zip(_HEADER_NAMES, layout.unpack_from(data)))
    at = schema.places(fields)
    for start, end, size in (
        (at.phases, at.sums, fields["phase_size"]),
        (at.steps, at.passes, fields["step_size"]),
        (at.passes, at.records, fields["pass_size"]),
        (at.records, at.end, fields["record_size"]),
    ):
        for row in range(start, min(end, len(reading.before)), max(size, 8)):
            if reading.before[row + size - 8 : row + size] != data[row + size - 8 : row + size]:
                data[row : row + size] = bytes(size)
    return bytes(data)


def as_of(data: bytes, until: float) -> bytes:
    """Return the bytes as they were at this time, in seconds since 1970: later calls are gone, and what ended later is still open."""
    changed = bytearray(data)
    layout = _HEADERS.get(data[12:16])
    if data[:8] != schema.MAGIC or layout is None or len(data) < layout.size:
        return data
    head = dict(zip(_HEADER_NAMES, layout.unpack_from(data)))
    at, order = schema.places(head), _ORDERS[data[12:16]]
    end = head["mono_ns"] + int(until * 1e9) - head["wall_ns"]
    moved = [head["mono_ns"]]
    records = schema.record_fields(head["version"])
    for fields, start, stop in ((schema.PHASE, at.phases, at.sums), (schema.PASS, at.passes, at.records), (records, at.records, at.end)):
        row = schema.layout(fields, order)
        names = [field.name for field in fields]
        for place in range(start, min(stop, len(data) - row.size + 1), row.size):
            if changed[place : place + 8] == bytes(8):
                continue
            row_then = _row_as_of(dict(zip(names, row.unpack_from(changed, place))), end)
            changed[place : place + row.size] = row.pack(*row_then.values()) if row_then else bytes(row.size)
            moved += [time for time in (row_then.get("entered_ns", 0), row_then.get("waited_ns", 0), row_then.get("left", 0) >> 2) if time]
    struct.pack_into(order + "Q", changed, schema.offset(schema.HEADER, "moved_ns"), max(moved))
    return bytes(changed)


def _row_as_of(row: Dict[str, int], end: int) -> Dict[str, int]:
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
_Row = Dict[str, Any]

_HEAD: _Row = {
    "magic": schema.MAGIC,
    "version": schema.VERSION,
    "byte_order": schema.BYTE_ORDER,
    **schema.SIZES,
    "boot": b"",
}
_WITHOUT: Dict[int, _Row] = {
    1: {"sum_size": 0, "sums": 0, "step_size": 0, "steps": 0, "pass_size": 0, "passes": 0},
    2: {"pass_size": 0, "passes": 0},
}
"""What a file of an older version does not have."""
_RECORD: _Row = {"peer": -1}
_FIXED = ("magic", "version", "byte_order", "header_size", "phase_size", "record_size", "sum_size", "step_size", "pass_size")
_NAMES = {"op": schema.names(schema.OPERATIONS), "kind": schema.names(schema.TEXTS), "state": schema.names(schema.STATES)}
_CODES = {field: {name: code for code, name in names.items()} for field, names in _NAMES.items()}
_PHASES = schema.names(schema.PHASES)
_PLACES = {name: code - 1 for code, name in _PHASES.items()}
_PHASE_CODES = {name: code for code, name in _PHASES.items()}


def is_text(data: bytes) -> bool:
    """Return whether these bytes are a ledger as text."""
    return data.startswith(_START)


def as_lines(data: bytes) -> str:
    """Return the ledger of a process that has ended as text; a ValueError says that this is not one, or of another version."""
    order = _ORDERS.get(data[12:16], "")
    if data[:8] != schema.MAGIC or not order:
        raise ValueError("This is not a ledger of ddp_probe.")
    head = named(schema.HEADER, schema.layout(schema.HEADER, order).unpack_from(data))
    usual = _usual(head["version"])
    if any(head[name] != usual.get(name) for name in _FIXED):
        raise ValueError("The ledger is of another version.")
    rows = [row for area in (_texts, _phases, _sums, _steps, _passes, _records) for row in area(data, head, order)]
    head["missing"] = max(0, schema.places(head).end - len(data))
    first = {"ledger": head["version"], "lines": len(rows), **_short(_opened(head), usual)}
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in (first, *rows))


def of_lines(text: bytes) -> bytes:
    """Return the bytes of the file that this text is of; a ValueError names a line that is not valid."""
    rows: List[_Row] = []
    for number, line in enumerate(text.split(b"\n")[:-1], 1):
        try:
            rows.append(dict(json.loads(line)))
        except (ValueError, TypeError, RecursionError):
            raise ValueError("Line %d of the ledger is not valid." % number) from None
    try:
        return _packed(rows)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, struct.error) as exc:
        raise ValueError("The text of the ledger is not valid: %s." % exc) from None


def _usual(version: Any) -> _Row:
    """Return the header of a version; empty if it is not known."""
    if version not in schema.READS:
        return {}
    return {**_HEAD, **_WITHOUT.get(version, {}), "version": version}


def _packed(rows: List[_Row]) -> bytes:
    head = {**_usual(rows[0]["ledger"]), **rows[0]}
    if head["ledger"] not in schema.READS:
        raise ValueError("it is of version %s, and this ddp_probe reads versions up to %d" % (head["ledger"], schema.VERSION))
    if head["lines"] != len(rows) - 1:
        raise ValueError("it has %d lines after the first, and says %s" % (len(rows) - 1, head["lines"]))
    texts = b"".join(_text_bytes(row) for row in rows if "text" in row)
    head.update(text_used=len(texts), text_size=max(head["text_size"], len(texts)), boot=bytes.fromhex(head["boot"] or ""))
    bounds = {name: schema.SIZES[name] for name in ("records", "phases", "sums", "steps", "passes")}
    for name, most in {**bounds, "text_size": max(schema.TEXT_BYTES, len(texts))}.items():
        if not 0 <= head[name] <= most:
            raise ValueError("%s is %s, and this ddp_probe writes at most %d" % (name, head[name], most))
    data = bytearray(schema.places(head).end)
    schema.layout(schema.HEADER, "<").pack_into(data, 0, *(head.get(field.name, 0) for field in schema.HEADER))
    data[schema.HEADER_BYTES : schema.HEADER_BYTES + len(texts)] = texts
    for row in rows:
        _place(data, row, head)
    return bytes(data[: len(data) - head.get("missing", 0)])


def _place(data: bytearray, row: _Row, head: _Row) -> None:
    """Write a row where it belongs."""
    at = schema.places(head)
    if "record" in row:
        index = row["record"]
        known = {**_RECORD, "index": index, "index_again": index, **row, "op": _code("op", row.get("op", 0))}
        _write(data, schema.record_fields(head["ledger"]), at.records, row.get("place", index % head["records"]), known)
    elif "pass" in row:
        index = row["pass"]
        entered = {"index": index, "index_again": index, **row, "phase": _PHASE_CODES.get(row["phase"], row["phase"])}
        _write(data, schema.PASS, at.passes, row.get("place", index % head["passes"]), entered)
    elif "phase" in row:
        _write(data, schema.PHASE, at.phases, _place_of(row["phase"]), {"stamp_again": row["stamp"], **row})
    elif "sum" in row:
        _write(data, schema.SUM, at.sums, row["sum"], {**row, "op": _code("op", row.get("op", 0))})
    elif "step" in row:
        index = row["step"]
        _write(data, schema.STEP, at.steps, row.get("place", index % head["steps"]), {"index": index, "index_again": index, **row})


def _place_of(phase: Any) -> int:
    return _PLACES[phase] if phase in _PLACES else int(phase)


def _write(data: bytearray, fields: Sequence[schema.Field], start: int, place: int, row: _Row) -> None:
    row["left"] = row.get("left_ns", 0) << 2 | _code("state", row.get("state", "open"))
    layout = schema.layout(fields, "<")
    layout.pack_into(data, start + place * layout.size, *(row.get(field.name, 0) for field in fields))


def _code(field: str, name: Any) -> int:
    return int(_CODES[field].get(name, name))


def _text_bytes(row: _Row) -> bytes:
    data = str(row["is"]).encode("utf-8", "surrogateescape")
    return schema.layout(schema.TEXT, "<").pack(len(data), _code("kind", row["kind"]), row["text"]) + data + b"\0" * (-len(data) % 8)


def _opened(head: _Row) -> _Row:
    return {name: value.hex() if name == "boot" else value for name, value in head.items() if name not in (*_FIXED, "text_used")}


def _short(row: _Row, usual: _Row) -> _Row:
    """Leave out what has its usual value. A rank of 0 is written: nobody would infer it from its absence."""
    return {name: value for name, value in row.items() if value != usual.get(name, 0) or name in ("rank", "text")}


def _texts(data: bytes, head: _Row, order: str) -> Iterator[_Row]:
    entry, at = schema.layout(schema.TEXT, order), schema.HEADER_BYTES
    end = min(at + head["text_used"], len(data))
    while at + entry.size <= end:
        size, kind, number = entry.unpack_from(data, at)
        at += entry.size
        if at + size > end:
            return
        text = data[at : at + size].decode("utf-8", "surrogateescape")
        yield {"text": number, "kind": _NAMES["kind"].get(kind, kind), "is": text}
        at += -(-size // 8) * 8


def _phases(data: bytes, head: _Row, order: str) -> Iterator[_Row]:
    for place, row in _rows(data, schema.PHASE, order, schema.places(head).phases, head["phases"]):
        again = {"stamp_again": row.pop("stamp_again")} if row["stamp_again"] != row["stamp"] else {}
        row.pop("stamp_again", 0)
        yield {"phase": _PHASES.get(place + 1, place), **_short(row, {}), "stamp": row["stamp"], **again}


def _records(data: bytes, head: _Row, order: str) -> Iterator[_Row]:
    fields = schema.record_fields(head["version"])
    rows = sorted(_rows(data, fields, order, schema.places(head).records, head["records"]), key=lambda row: int(row[1]["index"]))
    for place, row in rows:
        index, again = row.pop("index"), row.pop("index_again")
        odd = {"place": place} if index % head["records"] != place else {}
        op = _NAMES["op"].get(row["op"], row["op"])
        yield {"record": index, **_short(dict(row, op=op), _RECORD), **odd, **({"index_again": again} if again != index else {})}


def _sums(data: bytes, head: _Row, order: str) -> Iterator[_Row]:
    for place, row in _rows(data, schema.SUM, order, schema.places(head).sums, head["sums"]):
        yield {"sum": place, **_short(dict(row, op=_NAMES["op"].get(row["op"], row["op"])), {})}


def _steps(data: bytes, head: _Row, order: str) -> Iterator[_Row]:
    for place, row in _rows(data, schema.STEP, order, schema.places(head).steps, head["steps"]):
        index, again = row.pop("index"), row.pop("index_again")
        odd = {"place": place} if index % head["steps"] != place else {}
        yield {"step": index, **_short(row, {}), **odd, **({"index_again": again} if again != index else {})}


def _passes(data: bytes, head: _Row, order: str) -> Iterator[_Row]:
    rows = _rows(data, schema.PASS, order, schema.places(head).passes, head["passes"])
    for place, row in sorted(rows, key=lambda row: int(row[1]["index"])):
        index, again = row.pop("index"), row.pop("index_again")
        odd = {"place": place} if index % head["passes"] != place else {}
        phase = _PHASES.get(row["phase"], row["phase"])
        yield {"pass": index, **_short(dict(row, phase=phase), {}), **odd, **({"index_again": again} if again != index else {})}


def _rows(data: bytes, fields: Sequence[schema.Field], order: str, start: int, count: int) -> Iterator[Tuple[int, _Row]]:
    """Yield the rows of an area in which anything was written."""
    layout = schema.layout(fields, order)
    for place in range(max(0, min(count, (len(data) - start) // layout.size))):
        at = start + place * layout.size
        if data[at : at + layout.size].strip(b"\0"):
            row = named(fields, layout.unpack_from(data, at))
            if "left" in row:
                left = row.pop("left")
                row = {**row, "left_ns": left >> 2, "state": _NAMES["state"][left & 3]}
            yield place, row


def named(fields: Sequence[schema.Field], values: Sequence[Any]) -> _Row:
    """Return the values of a row by the names of their fields."""
    return {field.name: value for field, value in zip(fields, values)}


# The layout of a ledger as JSON, for programs in other languages that read one; ddp_probe/shared/ledger_schema.py declares it.


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
    Area("pass", "A ring: pass n lies in place n modulo the number of passes. Each is one time in a phase.", ledger_schema.PASS),
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


def layout_as_json() -> Dict[str, Any]:
    """Return the layout."""
    return {
        "version": ledger_schema.VERSION,
        "suffix": ledger_schema.SUFFIX,
        "magic": ledger_schema.MAGIC.decode("ascii"),
        "byte_order": "That of the process that writes: byte_order in the header is 0x%08x." % ledger_schema.BYTE_ORDER,
        "sizes": {
            "doc": "As this version writes them. A reader takes them from the header.",
            **{name: ledger_schema.SIZES[name] for name in ("header_size", "text_size", "phases", "sums", "steps", "passes", "records")},
        },
        "areas": [_area(area) for area in AREAS],
        "codes": {name: [code._asdict() for code in codes] for name, codes in CODES.items()},
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
