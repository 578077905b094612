"""Rates a line of a log: no sign of trouble, a possible one, or a certain one."""

import re
from typing import List, Optional

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
    """Return the rating of a line: nothing, possible trouble, or a failure."""
    found = _TROUBLE.search(line)
    if found:
        return TROUBLE if not _HARMLESS.search(line) else QUIET
    return HINT if _HINT.search(line) and not _HARMLESS.search(line) else QUIET


def rank_inside(line: str) -> Optional[int]:
    """Return the rank named in a line of torch's C++ code; in a group other than the default one the number is not the rank."""
    found = _RANK.search(line) if "Rank " in line else None
    return int(found.group(1)) if found else None
