"""What proves that a rank did well (its own last line with exit code 0, or its parent's report), and what is missing.

Everything else is a gap: clear is a claim about every rank.
"""

from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ddp_probe.judging import _next
from ddp_probe.judging.words import counted, place, subject
from ddp_probe.reading.model import Death, LoggedProcess, Run

RUNNING, FAILED, SIGNAL, NO_END, EXIT_CODE, UNKNOWN_CODE, UNKNOWN_SIZE, HOLES = (
    "still-running",
    "failed",
    "signal",
    "no-end",
    "exit-code",
    "unknown-exit-code",
    "unknown-size",
    "lines-missing",
)


class Gap(NamedTuple):
    """Why a rank is not proven to have done well: what follows its name, for one rank and for several, and what to do next."""

    slug: str
    one: str
    many: str
    next: str


def gaps(run: Run) -> Iterator[Tuple[Gap, List[LoggedProcess]]]:
    """Yield what is missing, with its processes; nothing for a run in which every process is proven good."""
    found: Dict[Gap, List[LoggedProcess]] = {}
    for process in run.processes:
        gap = unproven(run, process)
        if gap is not None:
            found.setdefault(gap, []).append(process)
    yield from found.items()


def sentence(gap: Gap, processes: List[LoggedProcess]) -> str:
    """Return a gap as a sentence."""
    ranks = sorted({process.rank for process in processes if process.rank is not None})
    return "%s %s." % (subject(ranks), gap.one if len(processes) == 1 else gap.many)


def unproven(run: Run, process: LoggedProcess) -> Optional[Gap]:
    """Return why this process is not proven to have done well, or None for one that is."""
    if process.rank is not None and process.rank in run.running:
        return Gap(RUNNING, "still runs", "still run", _next.FOLLOW)
    told = word(run, process)
    if told is not None and told.signal:
        return Gap(SIGNAL, "was ended by %s" % told.signal, "were ended by %s" % told.signal, _next.SIGNAL % told.signal)
    fatal = next((failure for failure in process.failures if failure.fatal), None)
    if fatal is not None:
        return _gap(FAILED, "failed with %s" % fatal.text.strip().split("\n", 1)[0][:200], _next.TRACEBACK % fatal.at)
    return _by_codes(run, process, _codes(process, told))


def word(run: Run, process: LoggedProcess) -> Optional[Death]:
    """Return what this process's parent reports of its end; by pid, or by rank if a shell is between the two."""
    if process.death is not None or process.rank is None:
        return process.death
    return run.death(process.rank)


def _codes(process: LoggedProcess, told: Optional[Death]) -> Set[int]:
    codes = {getattr(process.end, "exit_code", None), told.exit_code if told is not None else None}
    return {code for code in codes if code is not None}


def _by_codes(run: Run, process: LoggedProcess, codes: Set[int]) -> Optional[Gap]:
    bad = sorted(codes - {0})
    if bad:
        site = process.ended.site if process.ended is not None else None
        left = "" if site is None else ", by the exit call at %s" % place(site)
        return _gap(EXIT_CODE, "ended with exit code %d without an exception that the probe saw%s" % (bad[0], left), _next.LOGGED)
    if not codes and process.end is None:
        how = "no end line: ended by a signal or by the program that started it, or still running elsewhere"
        return Gap(NO_END, "has " + how, "have " + how, _next.GONE)
    if not codes:
        how = "ended by %s, and the exit code is not known"
        return Gap(UNKNOWN_CODE, how % "itself", how % "themselves", _next.UNTOLD)
    if run.expected is None and process.started.role != "solo":
        return _gap(UNKNOWN_SIZE, "ended well, and the expected number of ranks is not known", _next.SIZE)
    if process.holes:
        how = "ended well, and %s of the file %s missing" % (counted(process.holes, "line"), "is" if process.holes == 1 else "are")
        return _gap(HOLES, how, _next.HOLES)
    return None


def _gap(slug: str, how: str, then: str) -> Gap:
    return Gap(slug, how, how, then)
