"""Finds tracebacks: what each line of a log is in one, and the lines that belong together."""

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from ddp_probe.reading.job_line import inside, job_line
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Failed
from ddp_probe.shared.schema import Site

HEADER, FRAME, SOURCE, FINAL, PERHAPS_FINAL, LINK, BLANK, OTHER = range(8)

_HEADER = re.compile(r"Traceback \(most recent call last\)")
_FRAME = re.compile(r'[\s>|+]*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
_IPYTHON_FRAME = re.compile(r"(?P<file>(?:[/~.]|<ipython|[A-Za-z]:\\)\S*) in (?P<function>[\w<>.]+)\(.*\)$")
_IPYTHON_NEWER = re.compile(r"(?:File|Cell) (?P<file>\S+?|In ?\[\d+\]),? ?(?::|line )(?P<line>\d+)(?:, in (?P<function>[\w.<>]+)\(.*)?$")
_RICH_FRAME = re.compile(r"│\s?(?P<file>/\S+):(?P<line>\d+) in (?P<function>[\w<>.]+)\s*│?$")
_NUMBERED = re.compile(r"(?:│\s)?\s*(?:-+>|❱)\s*(?P<line>\d+) (?P<text>.*?)\s*│?$")  # The line of the frame in a source listing.
_LISTING = re.compile(r"(?:│.*│?|[╭╰]─.*|\s*\d+(?: .*)?)$")
_CLASS = r"(?:[A-Z]\w*)?(?:(?<=\w)Error|Exception|Interrupt|Timeout|TimeoutExpired|Refused|ExceptionGroup|SystemExit|StopIteration)"
_NAME = r"(?:(?:[A-Za-z_]\w*\.)*" + _CLASS
_SMALL = r"|socket\.(?:timeout|gaierror|error)|(?:struct|zlib|binascii|zmq|select)\.[eE]rror(?:\.\w+)?|queue\.(?:Empty|Full))"
_FINAL = re.compile(r"\s*(?P<type>%s%s)(?:\([\w.]+\))?(?::(?: (?P<message>.*))?)?$" % (_NAME, _SMALL))
_PERHAPS = re.compile(r"\s*(?P<type>(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*|[A-Z]\w*)(?:\([\w.]+\))?(?::(?: (?P<message>.*))?)?$")
_NO_EXCEPTION = re.compile(r"\s*(?:INFO|WARNING|ERROR|DEBUG|CRITICAL|NCCL|Epoch|Step|Iteration)\b")
_LINK = re.compile(
    r"[\s|+]*(?:During handling of the above exception, another exception occurred|The above exception was the direct cause of the following exc)"
)
_GROUP_MARGIN = re.compile(r"\s*(?:\+(?:-\+)?-+(?: \d+ -+)?$|[|+] (?=\s*\S)|\|\s*$)")


class TextLine(NamedTuple):
    """A line of a plain log, and its role in a traceback."""

    number: int
    text: str
    kind: int
    indent: int
    site: Optional[Site] = None
    type: str = ""
    message: str = ""  # The message in an exception's last line; in a listing, the text of the frame's line.


def line(number: int, text: str, in_group: bool) -> TextLine:
    """Classify a line; in an exception group, without the margin that shows the nesting."""
    if in_group:
        margin = _GROUP_MARGIN.match(text)
        text = text[margin.end() :] if margin else text
    text = text.rstrip()
    bare = text.lstrip()
    indent = len(text) - len(bare)
    if not bare:
        return TextLine(number, text, BLANK, 0)
    if "(most recent call last)" in text and _HEADER.search(text):
        return TextLine(number, text, HEADER, indent)
    site = _site(text) if ("File " in text or " in " in text or "Cell " in text) else None
    if site is not None:
        return TextLine(number, text, FRAME, indent, site)
    if " exception" in text and _LINK.match(text):
        return TextLine(number, text, LINK, indent)
    listed = _NUMBERED.match(text) if ("->" in text or "❱" in text) else None
    if listed:
        return TextLine(number, text, SOURCE, indent, Site("", int(listed.group("line"))), "", listed.group("text"))
    return _final(number, text, indent)


def _site(text: str) -> Optional[Site]:
    for pattern in (_FRAME, _IPYTHON_FRAME, _IPYTHON_NEWER, _RICH_FRAME):
        match = pattern.match(text)
        if match:
            groups = match.groupdict()
            number = int(groups.get("line") or 0) if len(groups.get("line") or "") < 10 else 0
            return Site(groups["file"][:1000], number, (groups.get("function") or "")[:200])
    return None


def _final(number: int, text: str, indent: int) -> TextLine:
    for kind, pattern in ((FINAL, _FINAL), (PERHAPS_FINAL, _PERHAPS)):
        match = pattern.match(text)
        if match and not (kind == PERHAPS_FINAL and _NO_EXCEPTION.match(text)):
            return TextLine(number, text, kind, indent, None, match.group("type"), match.group("message") or "")
    return TextLine(number, text, OTHER, indent)


def is_listing(text: str) -> bool:
    """Return whether a line surrounds the line of a frame, as in the listings of IPython and rich."""
    return _LISTING.match(text) is not None


# Collects one traceback: its frames, the exception's last line, and further lines of its message.

_FRAMES = 200  # Maximum frames, for infinite recursion: the first half stays, newer frames replace the rest.
_LINES, _LETTERS = 300, 1 << 16  # Maximum lines and characters of a message.
_LOOSE = 40  # Maximum lines that belong to a message only because they follow it.
_RECENT = 4  # A traceback without a new line for this many lines, times the open tracebacks, is no longer being printed.
TRAINING = re.compile(r"(?i)\b(?:epoch|step|iter(?:ation)?|loss)\b['\"]?[\s:=#\[(]{1,4}\d")  # A progress bar is drawn again at its end.
RECORD = re.compile(  # The beginning of other output, never part of a message.
    r"\[?\d{4}[-/]\d\d[-/]\d\d|\d\d/\d\d(?:/\d{4})? \d\d:|[IWEF]\d{4} |\[[IWEF][ \d\]]|\[?(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)\b|!!! |ddp_probe: "
    r"|\S+:\d+:\d+ \[\d+\] (?:\S+ )?NCCL|\S+:\d+(?::\d+)?\] |terminate called|\S+\.py:\d+: |\w*Warning: |usage: |\S+\.py: error:|Fatal Python error"
    r"|[^%|]{0,80}?\d{1,3}%\||srun: |slurmstepd|Killed|Aborted|Segmentation fault|.*: line \d+: |\*{10}|(?:Current t|T)hread 0x|THCudaCheck|Epoch"
)
_GOES_ON = re.compile(
    r"Exception raised from|frame #|CUDA kernel errors|For debugging|Compile with|Last error|\[?\d+\]?[:.]|\(\d\)|Parameter|Please|Device-side"
    r"|Original |The |If |This |Check |=====|-----|Root Cause|Failures:|\[\d+\]:|To execute|\* |- "
)
_SUMMARY = ("ChildFailedError", "CalledProcessError", "ProcessRaisedException")


class Trace:
    """One traceback, complete or not."""

    def __init__(self, number: int, counted: int, known: Dict[Tuple[str, int], str]) -> None:
        self.number = number
        self.known = known  # The text of source lines seen in other tracebacks of the same source.
        self.tangled = False  # Another traceback was open at the same time: several ranks print into one pipe.
        self.touched = counted
        self.frames: List[Site] = []
        self.source: Dict[Tuple[str, int], str] = {}
        self.raw: List[str] = []
        self.expects_source = False
        self.listing = False  # The form of IPython or rich.
        self.type = ""
        self.message: List[str] = []
        self.done = 0  # Line number of the exception's last line.
        self.fatal = True
        self.rank: Optional[int] = None
        self._column = 2  # The indentation of frames; the exception's last line is indented less.
        self._letters = 0
        self._loose = 0
        self._blanks = 0

    # --- frames

    def accepts(self, line: TextLine, counted: int, at_once: int) -> float:
        """Return how well a line continues this traceback; 0 if it does not."""
        recent = counted - self.touched <= _RECENT * at_once
        if line.kind == FRAME:
            return self._accepts_frame(line, recent)
        if line.kind in (HEADER, LINK) or not (self.frames or line.kind == FINAL):
            return 0.0
        if self._is_final(line):
            # An ambiguous last line is accepted only while this traceback is being printed.
            return 2.0 + recent - 0.5 * self.expects_source if recent or line.kind == FINAL else 0.0
        if self.listing:
            return 2.0 if line.kind in (SOURCE, BLANK) or is_listing(line.text) else 0.0
        return self._accepts_source(line, recent, counted - self.touched == 1) if line.kind != BLANK else 0.0

    def _accepts_frame(self, line: TextLine, recent: bool) -> float:
        assert line.site is not None
        if self.frames and not self.listing and abs(line.indent - self._column) > 1:
            return 0.0
        score = 2.0 + recent - self.expects_source
        if self.frames:
            last = self.frames[-1]
            if last == line.site:
                score -= 1.5  # More likely the same frame of another rank.
            elif line.site.function and line.site.function + "(" in self.source.get((last.file, last.line), ""):
                score += 1.0
        return score

    def _accepts_source(self, line: TextLine, recent: bool, fresh: bool) -> float:
        if "[Previous line repeated" in line.text:
            return 2.0 * recent
        if not self.expects_source:
            return 1.0 * recent * (line.indent > self._column)
        score = 2.0 + recent if line.indent > self._column else 1.5 * recent * (self._flat or (self.tangled and line.indent == 0))
        if score and self.tangled:
            # Old Pythons write indentation and text separately: with another rank in between, one line has both indentations and a later one none.
            score += 0.5 * fresh * ((line.indent >= self._column + 6) - (line.indent == 0))
            source = self.known.get((self.frames[-1].file, self.frames[-1].line))
            if source is not None:
                score += 2.0 if source == line.text.strip() else -1.4
        return score

    def _is_final(self, line: TextLine) -> bool:
        if line.kind not in (FINAL, PERHAPS_FINAL) or (not self.listing and line.indent >= max(self._column, 1)):
            return False
        return not ((self._flat or (self.tangled and not line.message)) and self.expects_source and line.kind == PERHAPS_FINAL)

    @property
    def _flat(self) -> bool:
        """Return whether the lines lost their indentation when copied."""
        return self._column == 0 and not self.listing

    def take(self, line: TextLine, counted: int) -> bool:
        """Add a line; return whether it was the exception's last line."""
        self.touched = counted
        if line.kind == FRAME:
            self._frame(line)
        elif self._is_final(line):
            self.finish(line)
            return True
        elif line.kind == SOURCE and line.site is not None:
            last = self.frames[-1]
            self.frames[-1] = Site(last.file, last.line or line.site.line, last.function)
            self._source(line.message.strip())
        elif self.expects_source:
            self._source(line.text.strip())
        if len(self.raw) < _LINES:
            self.raw.append(line.text)
        return False

    def _frame(self, line: TextLine) -> None:
        assert line.site is not None
        if not self.frames:
            self._column = line.indent
        self.listing = self.listing or 'File "' not in line.text
        if len(self.frames) >= _FRAMES:
            del self.frames[_FRAMES // 2]
        self.frames.append(line.site)
        self.expects_source = not self.listing

    def _source(self, text: str) -> None:
        last = self.frames[-1]
        self.source[last.file, last.line] = self.known[last.file, last.line] = text[:500]
        self.expects_source = False

    # --- the exception and its message

    def finish(self, line: TextLine) -> None:
        """Add the exception's last line, which is the first line of its message."""
        self.type, self.done = line.type[:500], line.number
        self._say(line.message)

    def goes_on(self, line: TextLine) -> bool:
        """Return whether a line still belongs to the message, and add it if so."""
        if line.kind in (HEADER, LINK, FRAME) or (line.kind == FINAL and line.indent < max(self._column, 1)) or self._loose > _LOOSE:
            return False
        if line.kind == BLANK:
            self._blanks += 1
            return self._blanks < 3
        tied = line.indent > 0 or _GOES_ON.match(line.text) is not None or self._in_summary()
        announced = self.message[-1].rstrip().endswith(":")  # The announced text may be a separate paragraph.
        if not tied and ((self._blanks and not announced) or RECORD.match(line.text) or TRAINING.search(line.text)):
            return False
        self._loose += not tied
        for _ in range(self._blanks):
            self._say("")
        self._blanks = 0
        self._say(line.text)
        return True

    def _in_summary(self) -> bool:
        """Return whether torchrun's block of ==== has begun and not ended."""
        return self.type.endswith(_SUMMARY) and sum(1 for text in self.message if text.lstrip().startswith("=====")) == 1

    def _say(self, text: str) -> None:
        while self.message[1:] and (len(self.message) >= _LINES or self._letters > _LETTERS):
            self._letters -= len(self.message.pop(len(self.message) // 2))
        self.message.append(text[:8000])
        self._letters += min(len(text), 8000)

    def failed(self, file: str, rank: Optional[int]) -> Failed:
        """Return it as a failure; without a last line, the message is the frames as printed."""
        number = self.done or self.number
        message = "\n".join(self.message if self.done else self.raw).rstrip()
        failed = Failed(rank=self.rank if rank is None else rank, when=float(number), at=LogLine(file, number), type=self.type, message=message)
        failed.frames, failed.source = self.frames, self.source
        failed.site = job_line(self.frames)
        failed.inside = inside(message) if self.done else ""
        failed.uncaught = bool(self.done) and self.fatal
        failed.fatal = self.fatal
        return failed
