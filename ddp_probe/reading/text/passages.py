"""Rates the lines of a log as signs of trouble, and collects the lines around a sign outside tracebacks."""

import re
from collections import deque
from typing import Deque, Dict, List, Optional, Tuple

from ddp_probe.reading.failures import consequence
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Failed

QUIET, HINT, TROUBLE = 0, 1, 2

# Lower case and loose: text without any of them is quiet. Zero bytes of UTF-16 must be removed first.
_WORDS = tuple(
    b"""error exception fail fatal abort kill fault warn sig terminat timeout timed traceback oom refused denied invalid illegal missing
    mismatch inconsist duplicate corrupt truncat deadlock hang hung stuck quota unable cannot could avail support unexpected unrecognized watchdog
    desync assert undefined such panic nccl hccl compiled built what(): exitcode mib already unreachable xid usage found most init""".split()
) + (b"of memory",)  # Training logs print the memory in use on every line.
_TROUBLE = re.compile(
    r"(?<![\w.])(?:[A-Za-z_][\w.]*)?(?:Error|Exception)\b|\b(?:ERROR|FATAL|Fatal|fatal|CRITICAL)\b|\berror:|: error\b|\bERR\d|\[E[ \d]|^E\d{4} "
    r"|\b[Aa]bort(?:ed|ing)\b|\b[Kk]ill(?:ed|ing)\b|[Ss]egmentation fault|[Bb]us error|core dumped|\bOOM\b|oom-kill|[Oo]ut of memory"
    r"|terminate called|what\(\): |\bSIG(?:KILL|TERM|SEGV|ABRT|BUS|FPE|ILL|HUP|INT)\b|exit ?code *:? *-?[1-9]|exit status [1-9]|NCCL WARN"
    r"|INTERNAL ASSERT|[Aa]ssertion .{0,300}failed|[Ww]atchdog caught|\bFAIL(?:ED|URE)?\b|[Ff]ailed|\bfailure\b|panic:|[Cc]annot |[Cc]ould not "
    r"|\b[Uu]nable to |No such file|[Pp]ermission denied|No space left|Traceback|Missing key|Unexpected key|size mismatch|No CUDA GPUs"
    r"|not compiled with|doesn't have .{0,80} built|undefined symbol|[Dd]esync|collective mismatch|\bXid\b"
)
_HINT = re.compile(
    r"[Ww]arn|WARN|[Tt]imed? ?out|[Rr]efused|[Ii]nvalid|[Ii]llegal|\b[Mm]issing|[Mm]ismatch|[Ii]nconsistent|[Dd]uplicate|[Cc]orrupt|[Tt]runcat"
    r"|[Dd]eadlock|\b[Hh](?:ang|ung)|\b[Ss]tuck\b|[Qq]uota|not (?:found|available|supported|compiled|built)|[Uu]navailable|[Uu]nsupported"
    r"|[Uu]nexpected|[Uu]nrecognized|[Ww]atchdog|No .{1,40} (?:available|found)|[Uu]ndefined|\d ?MiB \||exitcode|^usage: |[Hh][Cc][Cc][Ll] function"
    r"|already (?:in use|exists|initialized)|[Uu]nreachable|Not init|\bSignal \d+|\be(?:rror|xception)\b"
)
# Names of metrics and zero counts, which are common in a healthy log.
_HARMLESS = re.compile(
    r"(?:error|Error|ERROR|fail(?:ed|ures?)|warnings?)s?(?:_\w{1,60})?['\"]?\s{0,20}[=:]\s{0,20}\(?[-\d.]|\b(?:0|no|without)\s{1,20}(?:errors?|failures?|warnings?)\b|IGNORE_ERROR"
)
_RANK = re.compile(r"\[(?:PG (?:ID )?0 (?:PG GUID \S+ )?)?Rank (\d{1,6})\](?!:)")


def signs(low: bytes) -> List[bytes]:
    """Return the signs of trouble in lower-case text; text without any can be skipped."""
    return [word for word in _WORDS if word in low]


def weigh(line: str) -> int:
    """Return the rating of a line: nothing, possible trouble, or a failure. What the probe printed repeats the failure of another line."""
    match = _TROUBLE.search(line)
    if match and not line.startswith("ddp_probe: "):
        return TROUBLE if not _HARMLESS.search(line) else QUIET
    return HINT if (match or _HINT.search(line)) and not _HARMLESS.search(line) else QUIET


def rank_inside(line: str) -> Optional[int]:
    """Return the rank named in a line of torch's C++ code; in a group other than the default one the number is not the rank."""
    match = _RANK.search(line) if "Rank " in line else None
    return int(match.group(1)) if match else None


# Collects the lines around a sign of trouble outside tracebacks, and splits them when they refer to another rank or another failure.

_AROUND = 3  # Quiet lines kept before and after a sign in a long log.
_LINES, _LETTERS = 200, 1 << 15


class Passages:
    """The passages of one source of lines."""

    def __init__(self, whole: bool) -> None:
        self._whole = whole  # Whether quiet lines are kept too.
        self._before: Deque[Tuple[int, str]] = deque(maxlen=_AROUND)
        self._lines: List[Tuple[int, str]] = []
        self._letters = 0
        self._first = 0  # Number of the first line with a sign.
        self._weight = QUIET
        self._quiet = 0
        self._rank: Optional[int] = None
        self._loss = ""
        self._headline = ""  # The first line that certainly reports a failure.
        self.ready: List[Failed] = []

    @property
    def open(self) -> bool:
        """Return whether following lines may belong to the passage."""
        return bool(self._lines)

    def add(self, number: int, text: str, file: str) -> bool:
        """Add a line; return whether it is kept for now."""
        weight = weigh(text)
        if weight == QUIET and not self._whole:
            return self.skip(number, text, file)
        if self._is_other(text, weight) or len(self._lines) >= _LINES or self._letters > _LETTERS:
            self.end(file)
        if not self._whole and not self._lines:
            self._lines.extend(self._before)
        self._before.clear()
        self._append(number, text)
        if weight > QUIET:
            self._mark(number, text, weight)
        return True

    def skip(self, number: int, text: str, file: str) -> bool:
        """Add a line known to be quiet, in a long log, which keeps quiet lines only around a sign; return whether it is kept."""
        if self._lines and self._quiet < _AROUND:
            self._quiet += 1
            self._append(number, text)
            return True
        self.end(file)
        self._before.append((number, text))
        return False

    def _append(self, number: int, text: str) -> None:
        self._lines.append((number, text[:8000]))
        self._letters += min(len(text), 8000)

    def _is_other(self, text: str, weight: int) -> bool:
        """Return whether a line is about another rank or another failure than the passage: it must not change the passage's cause."""
        if weight == QUIET or not self._lines or text[:1].isspace():
            return False
        rank, loss = rank_inside(text), consequence(text)
        if not self._first:
            return rank is not None or bool(loss)
        return rank != self._rank or loss != self._loss

    def _mark(self, number: int, text: str, weight: int) -> None:
        if not self._first:
            self._first, self._loss = number, consequence(text)
        if self._rank is None:
            self._rank = rank_inside(text)
        if weight == TROUBLE and not self._headline:
            self._headline = text
        self._weight = max(self._weight, weight)
        self._quiet = 0

    def end(self, file: str) -> None:
        """End the passage."""
        lines, self._lines = self._lines, []
        while lines and not lines[-1][1].strip():
            lines.pop()
        while lines and not lines[0][1].strip():
            lines.pop(0)
        if lines:
            self.ready.append(self._failed(lines, file))
        self._first, self._weight, self._quiet, self._rank, self._loss, self._letters, self._headline = 0, QUIET, 0, None, "", 0, ""

    def _failed(self, lines: List[Tuple[int, str]], file: str) -> Failed:
        number = self._first or lines[0][0]
        failed = Failed(rank=self._rank, when=float(number), at=LogLine(file, number), type="", message="\n".join(text for _, text in lines))
        failed.source = _by_place(lines, file)
        failed.uncaught = self._weight == TROUBLE
        failed.consequence = self._loss
        failed.headline = self._headline
        return failed


def _by_place(lines: List[Tuple[int, str]], file: str) -> Dict[Tuple[str, int], str]:
    """Return the lines with their numbers: a passage from a log of several ranks has gaps."""
    texts: Dict[Tuple[str, int], str] = {}
    for number, text in lines:
        key = (file, number)
        texts[key] = texts[key] + "\n" + text if key in texts else text
    return texts
