"""Reads a plain log: what a job printed, without the probe. A short log is kept whole, a long one only near signs of trouble."""

import re
from bisect import insort
from collections import deque
from itertools import islice
from typing import Deque, Dict, Iterable, Iterator, List, Optional, Set, Tuple, Union

from ddp_probe.reading.model import Failed, TextLog
from ddp_probe.reading.text.logical import PastedLines
from ddp_probe.reading.text.marks import clean
from ddp_probe.reading.text.origins import Logical, Origin
from ddp_probe.reading.text.passages import signs
from ddp_probe.reading.text.streams import Stream
from ddp_probe.reading.text.survived import survived
from ddp_probe.reading.text.tracebacks import TRAINING
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted, size

LONGEST = 1 << 16
_BLOCK = 200  # Lines read together; a log with at most this many is short.
_SHORT = 1 << 18  # Maximum bytes of a short log.
_STREAMS = 5000  # Sources open at a time: ranks of a large job.
_TAIL, _BEFORE = 50, 3  # Lines kept without a sign: the last ones of the log, and those before a line with a sign.
_ALIKE, _PATTERNS = 200, 20000  # Maximum lines of one source that differ only in numbers, and maximum kinds of such lines.
_ROOM, _END_ROOM = 4 << 20, 1 << 20  # Characters of lines with signs, from the beginning and from the end; lines in between are only counted.
_DIGITS = b"0123456789"
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")
_PATIENCE = 2000  # Lines after a failure in which a line of the training is looked for.
_APART = re.compile(r"\brank\s*: (\d{1,6}) \(local_rank: (\d{1,6})\)")
_ONE_NODE = re.compile(r"\bgroup_world_size=1\b")


def read(lines: Iterable[bytes], file: str) -> TextLog:
    """Return the failures in a plain log, and the part of its text that may matter."""
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


def left_out(log: TextLog) -> Iterator[str]:
    """Yield sentences about the parts of a log that were not read."""
    if log.passed:
        yield say(
            "{file} has too many lines with signs of trouble: {count} lines in the middle were skipped (only the first {first} and the last "
            "{last} of such lines are read).",
            file=quoted(log.file),
            count=log.passed,
            first=size(_ROOM),
            last=size(_END_ROOM),
        )
    if log.dropped:
        yield say("{file} has more failures than are kept: {count} in the middle were dropped.", file=quoted(log.file), count=log.dropped)


class _Reader:
    """Reads one log, block by block."""

    def __init__(self, file: str, whole: bool) -> None:
        self._file = file
        self._whole = whole
        self._lines = PastedLines(whole)
        self._streams: Dict[str, Stream] = {}  # Ordered by first line.
        self._busy: Set[str] = set()
        self._failures = Failures()
        self._text = NotedLines()
        self._tail: Deque[Tuple[int, Union[bytes, str]]] = deque(maxlen=_TAIL)
        self._apart: Set[int] = set()  # rank minus local rank
        self._alike: Dict[str, int] = {}
        self._number = 0
        self._room = _ROOM
        self._held: Deque[Tuple[int, List[bytes]]] = deque()  # The last blocks, after the room for the first ones is used up.
        self._held_bytes = 0
        self._passed = 0
        self._dull: Set[bytes] = set()  # Lines without new information, with their digits removed.
        self._signs: List[bytes] = []  # The signs in the current block.
        self._patience = _PATIENCE if whole else 0
        self._went_on: List[Tuple[int, Optional[int]]] = []  # Lines of the training, the first ones after each failure; whose they are.

    def block(self, lines: List[bytes]) -> None:
        """Read some lines."""
        before, self._number = self._number, self._number + len(lines)
        self._signs = self._new_signs(lines)
        if before and not self._signs and (self._room <= 0 or not self._busy):
            self._tail.extend(zip(range(self._number - len(lines[-_TAIL:]) + 1, self._number + 1), lines[-_TAIL:]))
            for number, line in enumerate(lines, before + 1):
                if self._patience <= 0:
                    break
                self._look(number, line.decode("utf-8", "replace"), None)
        elif self._room > 0:
            self._read(before, lines)
        else:
            self._hold(before, lines)

    def _hold(self, before: int, lines: List[bytes]) -> None:
        """Hold a block back: only the last blocks of a long log are read."""
        self._held.append((before, lines))
        self._held_bytes += sum(map(len, lines))
        while self._held_bytes > _END_ROOM and len(self._held) > 1:
            _, dropped = self._held.popleft()
            self._held_bytes -= sum(map(len, dropped))
            self._passed += len(dropped)

    def _read(self, before: int, lines: List[bytes]) -> None:
        for logical in self._lines.of(before, lines):
            dull, raw = self._line(logical, not before), lines[logical.number - before - 1]
            if dull and logical.lone and len(raw) < 1000 and len(self._dull) < _PATTERNS:
                self._dull.add(raw.translate(None, _DIGITS))

    def _line(self, logical: Logical, always: bool) -> bool:
        """Read one line; return whether it, and later lines like it, can be skipped."""
        number, text, origin = logical.number, logical.text, logical.origin
        self._measure(text)
        stream = self._stream(origin)
        dull = not self._whole and not stream.tracing and self._is_dull(text, origin)
        if dull:
            kept = stream.skip(number, text)
        else:
            self._room -= len(text) + 1
            kept = stream.feed(number, text)
        if self._patience > 0 and not stream.tracing:
            self._look(number, text, origin.rank)
        self._note(stream)
        if kept or always:
            self._catch_up(number)
            self._text.add(number, text)
        else:
            self._tail.append((number, text))
        return dull

    def _look(self, number: int, text: str, rank: Optional[int]) -> None:
        """Note a line of the training: a failure before it may have been survived."""
        self._patience -= 1
        low = text.lower()
        if ("step" in low or "loss" in low or "epoch" in low or "iter" in low) and TRAINING.search(text):
            self._went_on.append((number, rank))
            self._patience = self._patience if self._whole else 0

    def _catch_up(self, number: int) -> None:
        """Keep the lines directly before a kept line."""
        before: List[Tuple[int, str]] = []
        while self._tail and self._tail[-1][0] >= number - _BEFORE:
            at, line = self._tail.pop()
            before.extend((at, part) for part in (clean(line) if isinstance(line, bytes) else [line]))
        for at, text in reversed(before):
            self._text.add(at, text)

    def _is_dull(self, text: str, origin: Origin) -> bool:
        """Return whether a line has no sign, or there were too many lines like it."""
        low = text.lower().encode("utf-8", "replace")
        if not any([word in low for word in self._signs]):  # noqa: C419  # A list is faster than one generator per line.
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
            self._patience = _PATIENCE

    def _close(self, key: str) -> None:
        stream = self._streams.pop(key)
        stream.end()
        self._note(stream)
        self._busy.discard(key)

    def _measure(self, text: str) -> None:
        """Note text that relates local ranks to ranks."""
        if "local_rank: " in text:
            self._apart.update(int(match.group(1)) - int(match.group(2)) for match in _APART.finditer(text))
        elif "group_world_size=1" in text and _ONE_NODE.search(text):
            self._apart.add(0)

    def log(self) -> TextLog:
        """Return the result."""
        if self._held:
            self._close_all()
        for before, lines in self._held:
            self._signs = self._new_signs(lines)
            self._read(before, lines)
        self._close_all()
        for number, line in self._tail:
            for text in clean(line) if isinstance(line, bytes) else [line]:
                self._text.add(number, text)
        offset: Optional[int] = next(iter(self._apart)) if len(self._apart) == 1 else None
        failures = survived(self._failures.all(offset), self._went_on)
        return TextLog(self._file, self._number, failures, self._text.all(), self._passed, self._failures.passed)

    def _close_all(self) -> None:
        for stream in self._streams.values():
            stream.end()
        last: List[Tuple[Failed, Optional[int]]] = []
        for stream in self._streams.values():
            last += [(failed, stream.origin.local_rank) for failed in stream.ready()]
        for failed, local_rank in sorted(last, key=lambda ready: ready[0].when):
            self._failures.add(failed, local_rank)
        self._streams.clear()
        self._busy.clear()

    def _new_signs(self, lines: List[bytes]) -> List[bytes]:
        """Return the signs of trouble in these lines. A training log has few kinds of lines, differing only in numbers: each is checked once."""
        kinds = {line.translate(None, _DIGITS) for line in lines} - self._dull
        signs_here = signs(b"".join(kinds).lower().replace(b"\0", b"")) if kinds else []
        if not signs_here and len(self._dull) < _PATTERNS:
            self._dull.update(kind for kind in kinds if len(kind) < 1000)
        return signs_here


# Keeps the first and the last failures and lines of a long log.

_FIRST, _LAST = 2000, 500  # Failures.
_WORDS, _LAST_WORDS = 1 << 20, 1 << 18  # Characters of them.
_LETTERS = 1 << 19  # Characters of text from each end.

_Kept = Tuple[float, int, Failed, Optional[int]]


def _size(failed: Failed) -> int:
    return len(failed.message) + 100 * len(failed.frames)


class Failures:
    """The first and the last failures of a log, by line. A failure with a long message may be added late."""

    def __init__(self) -> None:
        self._first: List[_Kept] = []
        self._last: Deque[_Kept] = deque()
        self._letters = self._last_letters = 0
        self._count = 0
        self.passed = 0  # Number of failures in the middle, which are not kept.

    def add(self, failed: Failed, local_rank: Optional[int]) -> None:
        """Add a failure; with the local rank that printed it, if only that is known."""
        self._count += 1
        insort(self._first, (failed.when, self._count, failed, local_rank))
        self._letters += _size(failed)
        while len(self._first) > 1 and (len(self._first) > _FIRST or self._letters > _WORDS):
            self._late(self._first.pop())

    def _late(self, kept: _Kept) -> None:
        size = _size(kept[2])
        self._letters -= size
        self._last.append(kept)
        self._last_letters += size
        while len(self._last) > 1 and (len(self._last) > _LAST or self._last_letters > _LAST_WORDS):
            self._last_letters -= _size(self._last.popleft()[2])
            self.passed += 1

    def all(self, offset: Optional[int]) -> List[Failed]:
        """Return the failures by line; a local rank becomes a rank if the log shows their offset."""
        kept = sorted((*self._first, *self._last), key=lambda place: place[:2])
        for _, _, failed, local_rank in kept:
            if failed.rank is None and local_rank is not None and offset is not None:
                failed.rank = local_rank + offset
        return [failed for _, _, failed, _ in kept]


class NotedLines:
    """The lines of a log that may matter, from its beginning and its end."""

    def __init__(self) -> None:
        self._first: List[Tuple[int, str]] = []
        self._last: Deque[Tuple[int, str]] = deque()
        self._room = _LETTERS
        self._letters = 0

    def add(self, number: int, text: str) -> None:
        """Add a line."""
        text = text[:8000]
        if self._room > 0:
            self._room -= len(text) + 1
            self._first.append((number, text))
            return
        self._last.append((number, text))
        self._letters += len(text) + 1
        while self._letters > _LETTERS:
            self._letters -= len(self._last.popleft()[1]) + 1

    def all(self) -> str:
        """Return the text."""
        return "\n".join(text for _, text in sorted((*self._first, *self._last), key=lambda line: line[0]))
