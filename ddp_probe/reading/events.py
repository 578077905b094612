"""Streams the events of many files as one sequence by time, without interpreting them.

A run of ten thousand files exceeds both memory and the limit of file descriptors: each file is read in pieces and closed in between.
"""

import heapq
from datetime import datetime, timezone
from itertools import chain
from typing import Any, Collection, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import msgspec

from ddp_probe.reading import fold_file, log_lines, rank_ledger, whole_ledger
from ddp_probe.reading.inventory import Inventory
from ddp_probe.reading.log_lines import lines, moment, seconds
from ddp_probe.shared import ledger_schema
from ddp_probe.shared.regular_files import open_bytes
from ddp_probe.shared.schema import UNREADABLE
from ddp_probe.wording.text import say

_ALL_PIECES = 64 << 20  # Bytes of all files together in memory at a time.
_PIECE = 1 << 18
_LEDGERS = 64  # The records of more ledgers at a time would fill the memory.
_ENCODE = msgspec.json.Encoder().encode


class Head(msgspec.Struct):
    """The fields by which lines are sorted and filtered."""

    event: str
    ts: str = ""
    mono_ns: int = 0
    rank: Optional[int] = None
    timestamp: Union[str, float, None] = None  # What structlog's TimeStamper writes, in a log that the job itself writes.

    @property
    def when(self) -> Optional[float]:
        """The time of the line."""
        return seconds(self.ts) if self.ts else moment(self.timestamp)


class TimedLine(NamedTuple):
    """One event as written, with its time, file and line number."""

    when: float  # Seconds since 1970 on the clock of its host.
    file: str
    number: int
    head: Head
    line: bytes


_Numbered = Tuple[int, bytes, bool]
_HEAD = msgspec.json.Decoder(Head)
_ANY = msgspec.json.Decoder()


def merged(files: Sequence[str], inventory: Inventory) -> Iterator[TimedLine]:
    """Yield the events of all files by time; the inventory counts the lines that are not events."""
    piece = max(1 << 12, min(_PIECE, _ALL_PIECES // max(len(files), 1)))
    ledgers = [ledger for ledger in map(rank_ledger.find, files) if ledger]
    of_ledgers = [records(path) for path in ledgers] if len(ledgers) <= _LEDGERS else []
    if len(ledgers) > _LEDGERS:
        inventory.notes.append(say("The records of {count} ledgers are not shown; name fewer ranks to see them.", count=len(ledgers)))
    return heapq.merge(*(_entries(file, piece, inventory) for file in files), *of_ledgers, key=lambda entry: entry.when)


def records(path: str) -> Iterator[TimedLine]:
    """Yield the records of a ledger as events, one for each call, at the time of its beginning."""
    full = rank_ledger.whole(path)
    head = full.header
    if head is None:
        return
    base = (head.wall_ns - head.mono_ns) * 1e-9
    for record in sorted(full.records, key=lambda record: record.entered_ns):
        when = base + record.entered_ns * 1e-9
        event = _event(record, head.rank, when)
        yield TimedLine(when, path, record.number, Head(event["event"], event["ts"], record.entered_ns, event["rank"]), _ENCODE(event) + b"\n")


def _event(record: whole_ledger.Record, rank: int, when: float) -> Dict[str, Any]:
    """Return a record as an event has it; what is not known, or does not apply, is left out."""
    left = record.left_ns if record.state != "open" else 0
    fields = {
        "event": "ledger." + record.op,
        "phase": "point",
        "ts": datetime.fromtimestamp(when, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "mono_ns": record.entered_ns,
        "rank": rank if rank >= 0 else None,
        "state": record.state,
        "seconds": (left - record.entered_ns) / 1e9 if left else None,
        "number": record.seq,
        "group": record.group.ranks if record.group is not None else None,
        "peer": record.peer if record.peer >= 0 else None,
        "elements": record.elements or None,
        "dtype": record.dtype or None,
        "device": record.device or None,
        "inner": record.is_inner or None,
        "async": record.is_async or None,
        "site": _site(record.site) if record.site is not None else None,
    }
    return {name: value for name, value in fields.items() if value is not None or name == "rank"}


def _site(site: whole_ledger.LedgerSite) -> Dict[str, Any]:
    return {"file": site.file, "line": site.line, "function": site.function}


def fields(line: bytes) -> Dict[str, Any]:
    """Return all fields of a line; if it is damaged behind the fields by which it is sorted, those fields, and that it is damaged."""
    try:
        decoded = _ANY.decode(line)
    except UNREADABLE:
        head = head_of(line)
        return {} if head is None else {"event": head.event, "ts": head.ts, "rank": head.rank, "damaged": "the rest of the line is not valid JSON"}
    return decoded if isinstance(decoded, dict) else {}


def _entries(file: str, piece: int, inventory: Inventory) -> Iterator[TimedLine]:
    base: Optional[float] = None
    when = 0.0
    for number, line, whole in _pieces(file, piece, inventory):
        if not whole:
            inventory.skip(file, "torn" if len(line) < 1 << 20 else "longer than 1 MiB")
            continue
        head = head_of(line)
        if head is None:
            inventory.skip(file, "not an event" if line.strip() else "empty")
            continue
        inventory.lines += 1
        if head.mono_ns and base is None:
            stamp = seconds(head.ts)
            base = None if stamp is None else stamp - head.mono_ns * 1e-9
        stamp = head.when if base is None or not head.mono_ns else base + head.mono_ns * 1e-9
        when = when if stamp is None else stamp
        yield TimedLine(when, file, number, head, line)


def head_of(line: bytes) -> Optional[Head]:
    """Return the fields by which a line is sorted and filtered, or None if it is not an event."""
    try:
        return _HEAD.decode(line)
    except UNREADABLE:
        pass
    try:
        decoded = _ANY.decode(line)
    except UNREADABLE:
        return None
    if not isinstance(decoded, dict) or not isinstance(decoded.get("event"), str):
        return None
    # A newer version may use another type for one of them.
    stamps = {name: decoded.get(name) for name in ("ts", "mono_ns", "rank")}
    return Head(
        decoded["event"],
        stamps["ts"] if isinstance(stamps["ts"], str) else "",
        stamps["mono_ns"] if isinstance(stamps["mono_ns"], int) else 0,
        stamps["rank"] if isinstance(stamps["rank"], int) else None,
    )


def _pieces(file: str, piece: int, inventory: Inventory) -> Iterator[_Numbered]:
    """Yield the lines of a file, which is open only while a piece of it is read."""
    offset = before = 0
    while True:
        held: List[_Numbered] = []
        size = 0
        try:
            with open_bytes(file) as stream:
                stream.seek(offset)
                for number, line, whole in lines(stream):
                    held.append((before + number, line, whole))
                    size += len(line)
                    if size >= piece:
                        break
                offset = stream.tell()
        except OSError as exc:
            inventory.unreadable[file] = exc.strerror or str(exc)
            return
        if not held:
            return
        before = held[-1][0]
        yield from held
        if size < piece:
            return


# Reads single lines of a log, or single records of a ledger, so that a report can quote what its evidence points at.


def lines_at(file: str, numbers: Collection[int]) -> Dict[int, bytes]:
    """Return the lines with these numbers, or of a ledger the records as `logs --raw` prints them; what is not there is left out."""
    if file.endswith(ledger_schema.SUFFIXES):
        return {timed_line.number: timed_line.line for timed_line in records(file) if timed_line.number in numbers}
    place, last = fold_file.real_place(file), max(numbers, default=0)
    by_number: Dict[int, bytes] = {}
    try:
        with open_bytes(place) as stream:
            for number, line, _ in lines(stream):
                if number in numbers:
                    by_number[number] = line
                if number >= last:
                    break
    except OSError:
        pass
    return by_number


# Reads the lines that were added to files since they were last read, and the lines of new files.

_CHUNK = 1 << 20


class Tail:
    """Growing files: remembers how far each one has been read."""

    def __init__(self, read: Dict[str, int]) -> None:
        self._lines = dict(read)  # File to the number of its lines already read.
        self._offsets = {file: _offset(file, count) for file, count in read.items()}

    def more(self, files: Sequence[str]) -> List[TimedLine]:
        """Return the new complete lines, by time on the clock of each host."""
        return sorted(chain.from_iterable(map(self._of, files)), key=lambda entry: entry.when)

    def _of(self, file: str) -> Iterator[TimedLine]:
        try:
            with open_bytes(file) as stream:
                stream.seek(self._offsets.get(file, 0))
                parts = stream.read(_CHUNK).split(b"\n")
        except OSError:
            return
        for part in parts[:-1]:  # the text after the last line break is still being written
            self._offsets[file] = self._offsets.get(file, 0) + len(part) + 1
            self._lines[file] = self._lines.get(file, 0) + 1
            head = head_of(part)
            if head is not None:
                yield TimedLine(head.when or 0.0, file, self._lines[file], head, part + b"\n")


def _offset(file: str, count: int) -> int:
    """Return the offset of the line after the first `count` lines."""
    offset = 0
    try:
        with open_bytes(file) as stream:
            for _ in range(count):
                offset += len(stream.readline())
    except OSError:
        pass
    return offset


def over(files: Sequence[str]) -> bool:
    """Return whether every process with a file has written its last line."""
    return bool(files) and all(log_lines.last(file).get("event") in ("process.end", "launcher.end") for file in files)
