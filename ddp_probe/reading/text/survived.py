"""Finds the failures of a plain log that its job survived: the training went on, and ended later by another failure."""

import re
from bisect import bisect
from typing import List, Optional, Sequence, Tuple

from ddp_probe.reading.failures import consequence
from ddp_probe.reading.model import Failed

# What a rank says of the others: it can follow from any failure before it.
_OF_OTHERS = re.compile(
    r"[NRHEMC]CCL|[Gg]loo|ProcessGroup|process group|TCPStore|[Tt]imed? ?out"
    r"|Dist(?:Backend|Network|Store)?Error|monitoredBarrier|[Cc]onnect|SIG[A-Z]{3,4}\b"
)
_REPORT = re.compile(r"(?<!NCCL )\b(?:INFO|DEBUG|WARN(?:ING)?)\b(?!\|)")  # The level of a line in which a program speaks of failures.
_AGAIN = re.compile(r"[Rr]estart")


def survived(failures: List[Failed], went_on: Sequence[Tuple[int, Optional[int]]]) -> List[Failed]:
    """Mark the failures after which a line of the training came, by the same rank or by nobody, and then an exception of the program itself."""
    of_program = [
        failed for failed in failures if failed.type and failed.fatal and not _OF_OTHERS.search(failed.text) and not consequence(failed.text)
    ]
    if not of_program or any(_AGAIN.search(failed.text) for failed in failures):
        return failures
    last = of_program[-1]
    lines = [number for number, _ in went_on]
    for failed in failures:
        if failed.when < last.when and failed.text != last.text:
            failed.fatal = failed.fatal and not (_is_report(failed) or any(_same(failed, who) for who in _between(failed, last, lines, went_on)))
    return failures


def _between(failed: Failed, last: Failed, lines: Sequence[int], went_on: Sequence[Tuple[int, Optional[int]]]) -> List[Optional[int]]:
    """Return the ranks of the lines of the training between two failures; one without a rank is of the later failure's."""
    lines_between = went_on[bisect(lines, failed.when) : bisect(lines, last.when)]
    return [last.rank if rank is None else rank for _, rank in lines_between]


def _same(failed: Failed, rank: Optional[int]) -> bool:
    return failed.rank is None or failed.rank == rank


def _is_report(failed: Failed) -> bool:
    return not failed.type and _REPORT.search(failed.headline[:80]) is not None
