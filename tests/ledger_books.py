"""Writes ledgers field by field as ledger_schema declares them, so that no test needs a job or torch."""

import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Union

from ddp_probe.shared import ledger_schema as schema

_CODES = {one.name: one.code for one in schema.OPERATIONS}
_PHASES = {one.name: one.code for one in schema.PHASES}


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
        self._count = schema.RECORDS
        at = schema.places(schema.SIZES)
        self._phases_at, self._records_at = at.phases, at.records
        self.data = bytearray(at.end)
        self._newest = 0
        self._filled = self._records_at
        since = self._ago(lived)
        self._head = {
            "magic": schema.MAGIC,
            "version": schema.VERSION,
            "byte_order": schema.BYTE_ORDER,
            **schema.SIZES,
            "rank": rank,
            "world_size": world,
            "pid": pid,
            "beat": 0,
            "born": born,
            "boot": bytes.fromhex(boot.replace("-", "")) or bytes(16),
            "wall_ns": time.time_ns() - int(lived * 1e9),
            "mono_ns": since,
            "moved_ns": since,
            "text_used": 0,
            "text_lost": 0,
            "closed_ns": 0,
        }
        self._text(schema.HOST, host)

    def _ago(self, seconds: float) -> int:
        """Return a moment before now on the host's monotonic clock, which on a machine that has booted meanwhile began later than that."""
        return max(1, self.now - int(seconds * 1e9))

    def _text(self, kind: int, text: str) -> int:
        data = text.encode()
        if data not in self._texts:
            entry = schema.layout(schema.TEXT)
            at = schema.HEADER_BYTES + self._used
            self._texts[data] = len(self._texts) + 1
            entry.pack_into(self.data, at, len(data), kind, self._texts[data])
            self.data[at + entry.size : at + entry.size + len(data)] = data
            self._used += entry.size + -(-len(data) // 8) * 8
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
        values = (self._newest, entered, entered + 2000 if call.waited else 0, left | call.state, call.seq, 16, 0, group, 0, self._site(call.site))
        values += (0, call.peer, 1, _CODES[call.op], self._text(schema.DTYPE, "float32"), 0, call.flags, self._newest)
        row = schema.layout(schema.RECORD)
        row.pack_into(self.data, self._records_at + self._newest % self._count * row.size, *values)
        self._filled = max(self._filled, self._records_at + (self._newest % self._count + 1) * row.size)
        self._head["moved_ns"] = max(int(self._head["moved_ns"]), entered)

    def phase(self, phase: Phase) -> None:
        """Write a row of the phase table."""
        row = schema.layout(schema.PHASE)
        entered = self._ago(phase.ago)
        at = self._phases_at + (_PHASES[phase.name] - 1) * row.size
        row.pack_into(
            self.data, at, 1, entered, 0 if phase.open else (entered + 1000) << 2 | schema.RETURNED, phase.count, self._site(phase.site), 0, 1
        )

    def write(self, cut: Optional[int] = None, **head: Any) -> Path:
        """Put the file on disk."""
        self._head.update(head)
        schema.layout(schema.HEADER).pack_into(self.data, 0, *(self._head[field.name] for field in schema.HEADER))
        with self.path.open("wb") as file:
            file.write(self.data[: self._filled if cut is None else cut])
            file.truncate(len(self.data) if cut is None else cut)
        return self.path

    def move(self) -> None:
        """Let the rank move now, as it does itself: by one store into the file."""
        with self.path.open("r+b") as file:
            file.seek(schema.offset(schema.HEADER, "moved_ns"))
            file.write(time.monotonic_ns().to_bytes(8, sys.byteorder))


def born(pid: int) -> int:
    """Return when the kernel started a process, in clock ticks."""
    return int(Path("/proc/%d/stat" % pid).read_text(encoding="utf-8").rpartition(")")[2].split()[19])


Part = Union[Call, Phase]


def returned(*seqs: int, group: str = "0-7") -> List[Call]:
    """Calls that have returned, with these numbers."""
    return [Call(seq=seq, state=schema.RETURNED, ago=30, group=group) for seq in seqs]
