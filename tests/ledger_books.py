"""Writes ledgers field by field as ledger_schema declares them, so that no test needs a job or torch."""

import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Union

from ddp_probe.shared import ledger_codec as codec
from ddp_probe.shared import ledger_schema as schema

_CODES, _PHASES = schema.codes(schema.OPERATIONS), schema.codes(schema.PHASES)


class Call(NamedTuple):
    """A record to write."""

    op: str = "all_reduce"
    seq: int = 1
    ago: float = 20.0  # Seconds since it was entered.
    state: int = schema.OPEN
    site: str = "/job/train.py:40:main"
    group: str = "0-7"
    flags: int = 0
    issued: bool = False
    waited: bool = False
    peer: int = -1


class Phase(NamedTuple):
    """A row of the phase table to write."""

    name: str
    count: int = 1
    ago: float = 20.0
    open: bool = True
    site: str = "/job/train.py:31:main"


class Book:
    """One ledger being written."""

    def __init__(self, path: Path, rank: int, world: int, pid: int, host: str, born: int, boot: str, lived: float) -> None:
        self.path = path
        self.now = time.monotonic_ns()
        self._texts: Dict[bytes, int] = {}
        self._used = 0
        self.data = bytearray(codec.PLACES.end)
        self._newest = 0
        self._filled = codec.PLACES.records
        since = self._ago(lived)
        self._head = {
            **codec.NEW,
            "rank": rank,
            "world_size": world,
            "pid": pid,
            "born": born,
            "boot": bytes.fromhex(boot.replace("-", "")) or bytes(16),
            "wall_ns": time.time_ns() - int(lived * 1e9),
            "mono_ns": since,
            "moved_ns": since,
            "text_used": 0,
        }
        self._text(schema.HOST, host)

    def _ago(self, seconds: float) -> int:
        """Return a moment before now on the host's monotonic clock, which on a machine that has booted meanwhile began later than that."""
        return max(1, self.now - int(seconds * 1e9))

    def _text(self, kind: int, text: str) -> int:
        data = text.encode()
        if data not in self._texts:
            self._texts[data] = len(self._texts) + 1
            entry, at = codec.text_entry(self._texts[data], kind, data), schema.HEADER_BYTES + self._used
            self.data[at : at + len(entry)] = entry
            self._used += len(entry)
            self._head["text_used"] = self._used
        return self._texts[data]

    def _site(self, site: str) -> int:
        return self._text(schema.SITE, site.replace(":", "\n"))

    def call(self, call: Call) -> None:
        """Write the next record."""
        self._newest += 1
        entered = self._ago(call.ago)
        left = (entered + 1000) << 2 if call.issued or call.state != schema.OPEN else 0
        first, _, last = call.group.partition("-")
        size = int(last or first) - int(first) + 1
        group = self._text(schema.GROUP, '{"id":"id of %s","size":%d,"ranks":"%s","nth":1}' % (call.group, size, call.group)) if call.group else 0
        row = {
            "index": self._newest,
            "entered_ns": entered,
            "waited_ns": entered + 2000 if call.waited else 0,
            "left": left | call.state,
            "seq": call.seq,
            "elements": 16,
            "group": group,
            "site": self._site(call.site),
            "peer": call.peer,
            "tensors": 1,
            "op": _CODES[call.op],
            "dtype": self._text(schema.DTYPE, "float32"),
            "flags": call.flags,
            "index_again": self._newest,
        }
        at = codec.PLACES.records + self._newest % schema.RECORDS * codec.RECORD.size
        codec.RECORD.write(self.data, at, row)
        self._filled = max(self._filled, at + codec.RECORD.size)
        self._head["moved_ns"] = max(int(self._head["moved_ns"]), entered)

    def phase(self, phase: Phase) -> None:
        """Write a row of the phase table."""
        entered = self._ago(phase.ago)
        left = 0 if phase.open else (entered + 1000) << 2 | schema.RETURNED
        row = {"stamp": 1, "entered_ns": entered, "left": left, "count": phase.count, "site": self._site(phase.site), "stamp_again": 1}
        codec.PHASE.write(self.data, codec.PLACES.phases + (_PHASES[phase.name] - 1) * codec.PHASE.size, row)

    def write(self, cut: Optional[int] = None, **head: Any) -> Path:
        """Put the file on disk."""
        self._head.update(head)
        codec.HEADER.write(self.data, 0, self._head)
        with self.path.open("wb") as file:
            file.write(self.data[: self._filled if cut is None else cut])
            file.truncate(len(self.data) if cut is None else cut)
        return self.path

    def move(self) -> None:
        """Let the rank move now, as it does itself: by one store into the file."""
        with self.path.open("r+b") as file:
            file.seek(codec.HEADER.offset("moved_ns"))
            file.write(time.monotonic_ns().to_bytes(8, sys.byteorder))


def born(pid: int) -> int:
    """Return when the kernel started a process, in clock ticks."""
    return int(Path("/proc/%d/stat" % pid).read_text(encoding="utf-8").rpartition(")")[2].split()[19])


Part = Union[Call, Phase]


def returned(*seqs: int, group: str = "0-7") -> List[Call]:
    """Calls that have returned, with these numbers."""
    return [Call(seq=seq, state=schema.RETURNED, ago=30, group=group) for seq in seqs]


def in_the_other_order(data: bytes) -> bytes:
    """Return a ledger as a process of a machine of the other byte order would have written it."""
    order = "<" if sys.byteorder == "big" else ">"
    file = codec.LedgerBytes(data)
    changed = bytearray(data)
    codec.RowCodec(schema.HEADER, order).write(changed, 0, file.head)
    at = file.head["header_size"]
    for number, kind, text in file.texts():
        entry = codec.text_entry(number, kind, text, order)
        changed[at : at + len(entry)] = entry
        at += len(entry)
    for area in schema.AREAS:
        if area.rows:
            native, other = codec.RowCodec(area.fields), codec.RowCodec(area.fields, order)
            for place in range(file.head[area.rows]):
                begin = file.begin(area) + place * native.size
                other.write(changed, begin, native.read(data, begin))
    return bytes(changed)
