"""Streams the events of many files in the order of time, as they were written; what a line means is the printer's affair.

A run of ten thousand files fits neither in memory nor into a process's file descriptors: each file is read a piece at a time and closed between.
"""

import heapq
import os
import stat
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import msgspec

from ddp_probe.read._lines import lines
from ddp_probe.read.fold import seconds
from ddp_probe.read.model import Inventory

_ALL_PIECES = 64 << 20  # Bytes of all files together that are held at a time.
_PIECE = 1 << 18


class Head(msgspec.Struct):
    """What a line is sorted and chosen by."""

    event: str
    ts: str = ""
    mono_ns: int = 0
    rank: Optional[int] = None


class Entry(NamedTuple):
    """One line of one file."""

    when: float  # Seconds since 1970 on its own host's clock.
    file: str
    number: int
    head: Head
    line: bytes


_Numbered = Tuple[int, bytes, bool]
_HEAD = msgspec.json.Decoder(Head)
_ANY = msgspec.json.Decoder()


def merged(files: Sequence[str], inventory: Inventory) -> Iterator[Entry]:
    """Yield the events of all files by time; the inventory counts what is none."""
    piece = max(1 << 12, min(_PIECE, _ALL_PIECES // max(len(files), 1)))
    return heapq.merge(*(_entries(file, piece, inventory) for file in files), key=lambda entry: entry.when)


def fields(line: bytes) -> Dict[str, Any]:
    """Return all that a line says."""
    found = _ANY.decode(line)
    return found if isinstance(found, dict) else {}


def _entries(file: str, piece: int, inventory: Inventory) -> Iterator[Entry]:
    base: Optional[float] = None
    when = 0.0
    for number, line, whole in _pieces(file, piece, inventory):
        if not whole:
            inventory.skip(file, "torn" if len(line) < 1 << 20 else "longer than 1 MiB")
            continue
        head = head_of(line)
        if head is None:
            inventory.skip(file, "no event" if line.strip() else "empty")
            continue
        inventory.lines += 1
        if head.mono_ns and base is None:
            stamp = seconds(head.ts)
            base = None if stamp is None else stamp - head.mono_ns * 1e-9
        stamp = seconds(head.ts) if base is None or not head.mono_ns else base + head.mono_ns * 1e-9
        when = when if stamp is None else stamp
        yield Entry(when, file, number, head, line)


def head_of(line: bytes) -> Optional[Head]:
    """Return what a line is sorted and chosen by; nothing where it is no event."""
    try:
        return _HEAD.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        found = _ANY.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("event"), str):
        return None
    known = {name: found.get(name) for name in ("ts", "mono_ns", "rank")}  # a newer version may have made one of them into something else
    return Head(
        found["event"],
        known["ts"] if isinstance(known["ts"], str) else "",
        known["mono_ns"] if isinstance(known["mono_ns"], int) else 0,
        known["rank"] if isinstance(known["rank"], int) else None,
    )


def _pieces(file: str, piece: int, inventory: Inventory) -> Iterator[_Numbered]:
    """Yield the lines of a file that is open only while a piece of it is read."""
    offset = before = 0
    while True:
        held: List[_Numbered] = []
        size = 0
        try:
            if not stat.S_ISREG(os.stat(file).st_mode):  # a pipe would be waited on for ever
                inventory.unreadable[file] = "It is no regular file."
                return
            with open(file, "rb") as stream:
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
