"""Reads a plain log: what a job printed, without any probe. A short one is taken whole; of a long one only what tells of trouble is kept."""

import re
from collections import deque
from itertools import islice
from typing import Deque, Dict, Iterable, List, Optional, Set, Tuple, Union

from ddp_probe.read.model import TextLog
from ddp_probe.read.text._clean import clean
from ddp_probe.read.text._kept import Failures, Text
from ddp_probe.read.text._prefix import Origin, Prefixes
from ddp_probe.read.text._signs import may_tell
from ddp_probe.read.text._stream import Stream

LONGEST = 1 << 16
_BLOCK = 200  # Lines looked at together; a log that has no more is short.
_SHORT = 1 << 18  # Bytes of such a log.
_STREAMS = 5000  # Sources at once: ranks of a large job.
_TAIL, _BEFORE = 50, 3  # Lines that stay in the text: the last ones, and those before a line that tells.
_ALIKE, _PATTERNS = 200, 20000  # Lines that differ in numbers only, of one source; and how many kinds of them are told apart.
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")
_APART = re.compile(r"\brank\s*: (\d{1,6}) \(local_rank: (\d{1,6})\)")
_ONE_NODE = re.compile(r"\bgroup_world_size=1\b")


def read(lines: Iterable[bytes], file: str) -> TextLog:
    """Return the failures in a plain log, and its text as far as it may matter."""
    rest = iter(lines)
    head = list(islice(rest, _BLOCK + 1))
    whole = len(head) <= _BLOCK and sum(map(len, head)) <= _SHORT
    reader = _Reader(file, whole)
    reader.block(head)
    while not whole:
        block = list(islice(rest, _BLOCK))
        if not block:
            break
        reader.block(block)
    return reader.log()


class _Reader:
    """Reads one log, block by block."""

    def __init__(self, file: str, whole: bool) -> None:
        self._file = file
        self._whole = whole
        self._prefixes = Prefixes()
        self._streams: Dict[str, Stream] = {}  # In the order of their first line.
        self._busy: Set[str] = set()
        self._failures = Failures()
        self._text = Text()
        self._tail: Deque[Tuple[int, Union[bytes, str]]] = deque(maxlen=_TAIL)
        self._apart: Set[int] = set()  # rank minus local rank
        self._alike: Dict[str, int] = {}
        self._number = 0

    def block(self, lines: List[bytes]) -> None:
        """Read some lines."""
        first = self._number == 0
        if not first and not self._busy and _is_quiet(lines):
            self._number += len(lines)
            self._tail.extend(zip(range(self._number - len(lines[-_TAIL:]) + 1, self._number + 1), lines[-_TAIL:]))
            return
        parts = [(self._number + index, part) for index, raw in enumerate(lines, 1) for part in clean(raw)]
        self._number += len(lines)
        self._prefixes.learn(part for _, part in parts)
        if first:
            parts = self._prefixes.mended(parts)
        for number, part in parts:
            self._line(number, part, first)

    def _line(self, number: int, text: str, always: bool) -> None:
        self._measure(text)
        origin, text = self._prefixes.split(text)
        stream = self._stream(origin)
        if not self._whole and not stream.busy and self._is_dull(text, origin):
            stream.skip(number, text)
            kept = False
        else:
            kept = stream.feed(number, text)
            self._note(stream)
        if kept or always:
            self._catch_up(number)
            self._text.add(number, text)
        else:
            self._tail.append((number, text))

    def _catch_up(self, number: int) -> None:
        """Keep the lines right before a line that is kept."""
        before: List[Tuple[int, str]] = []
        while self._tail and self._tail[-1][0] >= number - _BEFORE:
            at, line = self._tail.pop()
            before.extend((at, part) for part in (clean(line) if isinstance(line, bytes) else [line]))
        for at, text in reversed(before):
            self._text.add(at, text)

    def _is_dull(self, text: str, origin: Origin) -> bool:
        """Tell a line that has no sign, or the like of which there have been too many."""
        if not may_tell(text.lower().encode("utf-8", "replace")):
            return True
        kind = origin.key + _NUMBER.sub("#", text[:200])
        seen = self._alike.get(kind, 0)
        if seen or len(self._alike) < _PATTERNS:
            self._alike[kind] = seen + 1
        return seen >= _ALIKE

    def _stream(self, origin: Origin) -> Stream:
        stream = self._streams.get(origin.key)
        if stream is None:
            stream = self._streams[origin.key] = Stream(origin, self._file, self._whole)
            if len(self._streams) > _STREAMS:
                self._close(next(iter(self._streams)))
        return stream

    def _note(self, stream: Stream) -> None:
        (self._busy.add if stream.busy else self._busy.discard)(stream.origin.key)
        for failed in stream.ready():
            self._failures.add(failed, stream.origin.local_rank)

    def _close(self, key: str) -> None:
        stream = self._streams.pop(key)
        stream.end()
        self._note(stream)
        self._busy.discard(key)

    def _measure(self, text: str) -> None:
        """Note what tells how local ranks and ranks go together."""
        if "local_rank: " in text:
            self._apart.update(int(found.group(1)) - int(found.group(2)) for found in _APART.finditer(text))
        elif "group_world_size=1" in text and _ONE_NODE.search(text):
            self._apart.add(0)

    def log(self) -> TextLog:
        """Return what was found."""
        for stream in self._streams.values():
            stream.end()
        last = [(failed, stream.origin.local_rank) for stream in self._streams.values() for failed in stream.ready()]
        for failed, local_rank in sorted(last, key=lambda each: each[0].when):
            self._failures.add(failed, local_rank)
        for number, line in self._tail:
            for text in clean(line) if isinstance(line, bytes) else [line]:
                self._text.add(number, text)
        offset: Optional[int] = next(iter(self._apart)) if len(self._apart) == 1 else None
        return TextLog(self._file, self._number, self._failures.all(offset), self._text.all())


def _is_quiet(lines: List[bytes]) -> bool:
    return not may_tell(b"".join(lines).lower().replace(b"\0", b""))


