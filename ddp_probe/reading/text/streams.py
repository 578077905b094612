"""Reads the lines of one source: a rank, a host, or all lines without a prefix, in which tracebacks of several ranks may be interleaved."""

import re
from typing import Dict, List, Optional, Tuple

from ddp_probe.reading.model import Failed
from ddp_probe.reading.text.origins import Origin
from ddp_probe.reading.text.passages import Passages
from ddp_probe.reading.text.tracebacks import FINAL, FRAME, HEADER, LINK, TextLine, Trace, line

_NAME = r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}?(?:Error|Exception)"
_NAME_AND_FRAME = re.compile(r'(?P<name>%s(?:: )?)(?P<rest> {2,60}File "[^"]+", line \d+.*)$' % _NAME)
# The second name directly follows the first one, its colon, or its message, without a space.
_TWO_NAMES = re.compile(r"(?P<one>%s)(?P<before>(?:: )?|: .{0,300}?[a-z0-9.)\]])(?P<two>%s)(?P<after>.*)$" % (_NAME, _NAME))


# Python writes an exception's name, its colon and its message one after the other: two interpreters may write them into one line.
class Tangle:
    """The incomplete part of a line of one source, until the rest arrives."""

    def __init__(self) -> None:
        self._name = ""

    def untangled(self, text: str) -> List[str]:
        """Return the original lines as far as possible; mixed messages of two exceptions are assigned to both."""
        if self._name and (text.startswith(": ") or (self._name.endswith(": ") and not text[:1].isspace())):
            name, self._name = self._name, ""
            return [name + text]
        torn = _NAME_AND_FRAME.match(text)
        if torn:
            self._name = torn.group("name")
            return [torn.group("rest")]
        half = len(text) // 2
        if half > 8 and text[:half] == text[half:]:  # Two ranks print the same, and the line break of one arrived late.
            return [text[:half]] * 2
        both = _TWO_NAMES.match(text)
        if both is None:
            return [text]
        words = " ".join(part for part in (both.group("before").strip(": "), both.group("after").strip(": ")) if part)
        return ["%s: %s" % (both.group(name), words) for name in ("one", "two")]


_AT_ONCE = 16  # Maximum open tracebacks in one source.
_KNOWN = 2000  # Maximum source lines whose text is remembered.
_STALE = 200  # After this many lines an open traceback is closed: its last line is missing.
_SURVIVED = re.compile(r"Exception ignored in|--- Logging error ---")
_SUMMED_UP = re.compile(r"\s*rank\s*: (\d{1,6}) \(local_rank: \d+\)")
_IN_SUMMARY = re.compile(r"\s*traceback : Traceback")


class Stream:
    """The state of one source."""

    def __init__(self, origin: Origin, file: str, whole: bool) -> None:
        self.origin = origin
        self._file = file
        self._open: List[Trace] = []
        self._finished: Optional[Trace] = None  # The last finished traceback; its message may continue.
        self._passages = Passages(whole)
        self._tangle = Tangle()
        self._known: Dict[Tuple[str, int], str] = {}
        self._count = 0
        self._in_group = False
        self._survived = False
        self._summed_up: Optional[int] = None
        self._ready: List[Failed] = []

    @property
    def busy(self) -> bool:
        """Return whether the next line matters whatever it contains."""
        return self.tracing or self._passages.open

    @property
    def tracing(self) -> bool:
        """Return whether the next line may belong to a traceback or a message, whatever it contains."""
        return bool(self._open or self._finished is not None)

    def skip(self, number: int, text: str) -> bool:
        """Take a line without new information, only while no traceback is open; return whether it is kept."""
        return self._passages.skip(number, text, self._file)

    def feed(self, number: int, text: str) -> bool:
        """Take one line; return whether it is kept."""
        kept = [self._feed(number, part) for part in (self._tangle.untangled(text) if len(self._open) > 1 else [text])]
        return any(kept)

    def _feed(self, number: int, text: str) -> bool:
        self._count += 1
        if "Exception Group Traceback" in text:
            self._in_group = True
        elif self._in_group and text.strip()[:1] not in ("|", "+", ""):
            self._in_group = False
        text_line = line(number, text, self._in_group)
        self._give_up(_STALE)
        if text_line.kind == HEADER:
            self._begin(text_line)
        elif not (self._continues(text_line) or self._says_more(text_line)):
            return self._starts(text_line)
        return True

    def _begin(self, text_line: TextLine) -> None:
        self._flush()
        self._passages.end(self._file)
        if len(self._open) >= _AT_ONCE:
            self._ready.append(self._failed(self._open.pop(0)))
        for _ in range(min(text_line.text.count("Traceback (most recent call last)"), _AT_ONCE)):  # Two ranks wrote without a line break in between.
            trace = self._trace(text_line)
            trace.raw.append(text_line.text)
            trace.fatal = not self._survived
            trace.rank = self._summed_up if _IN_SUMMARY.match(text_line.text) else None
            self._open.append(trace)
        self._survived = False

    def _trace(self, text_line: TextLine) -> Trace:
        if len(self._known) > _KNOWN:
            self._known.clear()
        for other in self._open:
            other.tangled = True
        trace = Trace(text_line.number, self._count, self._known)
        trace.tangled = bool(self._open)
        return trace

    def _continues(self, text_line: TextLine) -> bool:
        """Add a line to the open traceback that it fits best; the older traceback if they fit equally."""
        scored = [(trace.accepts(text_line, self._count, len(self._open)), -index, trace) for index, trace in enumerate(self._open)]
        score, _, trace = max(scored, default=(0.0, 0, None), key=lambda score_of_trace: score_of_trace[:2])
        if trace is None or score <= 0:
            return False
        if trace.take(text_line, self._count):
            self._flush()
            self._open.remove(trace)
            self._finished = trace
        return True

    def _says_more(self, text_line: TextLine) -> bool:
        if self._finished is None:
            return False
        summed_up = _SUMMED_UP.match(text_line.text)
        if summed_up:
            self._summed_up = int(summed_up.group(1))
        if self._finished.goes_on(text_line):
            return True
        self._flush()
        return False

    def _starts(self, text_line: TextLine) -> bool:
        """Begin a traceback without a header, or treat the line as ordinary text."""
        if text_line.kind in (FRAME, FINAL):
            self._passages.end(self._file)
            trace = self._trace(text_line)
            if trace.take(text_line, self._count):
                self._finished = trace
            else:
                self._open.append(trace)
            return True
        if text_line.kind == LINK:
            return True
        self._survived = _SURVIVED.search(text_line.text) is not None or (self._survived and not text_line.text.strip())
        return self._passages.add(text_line.number, text_line.text, self._file)

    def _give_up(self, age: int) -> None:
        for trace in [trace for trace in self._open if self._count - trace.touched > age]:
            self._open.remove(trace)
            self._ready.append(self._failed(trace))

    def _flush(self) -> None:
        if self._finished is not None:
            self._ready.append(self._failed(self._finished))
            self._finished = None

    def _failed(self, trace: Trace) -> Failed:
        return trace.failed(self._file, self.origin.rank)

    def end(self) -> None:
        """Close everything that is open."""
        self._count += 1
        self._give_up(0)
        self._flush()
        self._passages.end(self._file)

    def ready(self) -> List[Failed]:
        """Return the failures closed since the last call."""
        if not self._ready and not self._passages.ready:
            return []
        failures = self._ready + self._passages.ready
        self._ready, self._passages.ready = [], []
        for failed in failures:
            if self.origin.rank is not None:
                failed.rank = self.origin.rank
        return failures
