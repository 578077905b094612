"""Reads from the timeouts of a plain log who waits in which collective, who is behind, who is silent, and whether all have arrived."""

import re
from typing import Dict, List, NamedTuple, Optional, Set

from ddp_probe.judging.printed import Match, matches
from ddp_probe.judging.rule import Printed, Rule
from ddp_probe.reading.model import Failed, Run
from ddp_probe.shared.mask_forms import Expression

WATCHDOG = r"[Ww]atchdog caught collective operation timeout: Work\w{0,9}\(SeqNum="
_WAIT = Expression(r"\[Rank (\d{1,6})\] %s(\d{1,12}), OpType=(\w{1,40})(?:, NumelIn=(\d{1,15}))?" % WATCHDOG)
_STATE = Expression(
    r"\[PG [^\n\]]{0,80}\bRank (\d{1,6})\][^\n]{0,160}?last enqueued (?:\w+ )?work: (\d{1,12}), last completed (?:\w+ )?work: (\d{1,12})"
)
_OTHER_GROUP = Expression(r"\[PG (?:ID )?[1-9]|\b(?:tensor|pipeline)[-_](?:model[-_])?parallel")  # Each group counts separately.
_BEFORE = Expression(r"Traceback \(most recent call last\)|out of memory|ncclRemoteError|NCCL WARN|exitcode", re.IGNORECASE)


class Wait(NamedTuple):
    """The collective in which a rank gave up."""

    number: int
    op: str
    size: Optional[int]  # Elements; torch before 2.1 does not say.


class Timeouts(NamedTuple):
    """The timeouts of one log."""

    match: Match  # The first of them.
    waits: Dict[int, Wait]
    enqueued: Dict[int, int]
    one_group: bool  # Numbers of two ranks can be compared.
    barrier: bool  # It mentions a barrier, which is also a reduction of one element.
    first: bool  # Nothing before them says that something else failed.

    @property
    def silent(self) -> List[int]:
        """Return the ranks below the highest that say nothing, if they are fewer than those that wait."""
        speak: Set[int] = {*self.waits, *self.enqueued}
        missing = sorted(set(range(max(speak) + 1)) - speak) if max(speak, default=0) < 4 * len(speak) else []
        return missing if len(speak) > 2 and len(missing) < len(speak) else []

    @property
    def all_came(self) -> bool:
        """Return whether each rank up to the highest had enqueued the single collective in which all of them wait."""
        kinds = set(self.waits.values())
        every = set(self.waits) == set(range(len(self.waits))) == set(self.enqueued) and len(self.waits) > 1
        return every and len(kinds) == 1 and min(self.enqueued.values()) > min(wait.number for wait in kinds)

    @property
    def behind(self) -> List[int]:
        """Return the ranks that have not enqueued what others wait for."""
        last = max((wait.number for wait in self.waits.values()), default=0)
        return sorted(rank for rank, number in self.enqueued.items() if number < last and rank not in self.waits)


def timeouts(rule: Rule, run: Run) -> List[Timeouts]:
    """Read the logs that hold a watchdog's timeout."""
    notices: Dict[str, Match] = {}
    for match in matches(rule._replace(printed=(Printed(WATCHDOG),)), run):
        if match.failure.process is None:
            notices.setdefault(match.failure.at.file, match)
    return [_read(notices[log.file], log.text) for log in run.texts if log.file in notices]


def _read(match: Match, text: str) -> Timeouts:
    waits: Dict[int, Wait] = {}
    begin = re.search(WATCHDOG, text)
    for rank, number, op, size in _WAIT.findall(text):
        waits.setdefault(int(rank), Wait(int(number), op, int(size) if size else None))
    enqueued = {int(rank): int(number) for rank, number, _ in _STATE.findall(text)}
    first = begin is not None and _BEFORE.search(text, 0, begin.start()) is None
    return Timeouts(match, waits, enqueued, _OTHER_GROUP.search(text) is None, "barrier" in text.lower(), first)


_WAITED = Expression(r"Timed out waiting \d{1,12} ?ms for (?:recv|send) operation")
_NOTIFY = Expression(r"Notify register times out[^\n]{0,900}?rankSize ?\[(\d{1,6})\], ?rankId ?\[(\d{1,6})\]")


class Stands(NamedTuple):
    """The failures in which ranks stopped waiting, for a library that does not number its collectives; and the ranks that say nothing."""

    failures: Dict[int, Failed]
    silent: List[int]


def stands(run: Run) -> Stands:
    """Read the timeouts of gloo and HCCL in plain logs; ranks count as silent if most speak."""
    failures: Dict[int, Failed] = {}
    size = 0
    for failure in run.failures:
        if failure.process is None:
            for match in _NOTIFY.finditer(failure.text):
                size = max(size, int(match.group(1)))
                failures.setdefault(int(match.group(2)), failure)
            if failure.rank is not None and _WAITED.search(failure.text):
                failures.setdefault(failure.rank, failure)
    speak = {failure.rank for failure in run.failures} | set(failures)
    missing = [rank for rank in range(max([size - 1, *failures], default=-1) + 1) if rank not in speak] if len(failures) > 2 else []
    return Stands(failures, missing if len(missing) < len(failures) else [])
