"""The run over time: one lane for each process, with spans for what it did and marks for its failures, what the findings point at, and its end.

Its size is bounded: a lane has what the reader keeps of the log, and the last and the longest calls of the ledger. It says how many are left out.
"""

from operator import attrgetter
from typing import Dict, Iterator, List, Optional, Set, Tuple

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.showing import rank_state
from ddp_probe.showing.spans import (
    COLLECTIVE,
    DRAWN,
    END,
    FAILURE,
    FINDING,
    HANG,
    KINDS,
    PHASE,
    Lane,
    LedgerExtract,
    Mark,
    Timeline,
    extract,
    memory,
    of_calls,
    of_hangs,
    of_ledger,
    start,
)
from ddp_probe.showing.spans import TimeSpan as Span
from ddp_probe.wording.text import say

__all__ = ["CALLS", "COLLECTIVE", "END", "FAILURE", "FINDING", "HANG", "KINDS", "LANES", "PHASE", "Lane", "Mark", "Span", "Timeline", "timeline"]


LANES = 1024
CALLS = 256  # Calls of one ledger, at most; if there are many lanes, fewer.
_ALL, _FEW = 1 << 16, 16  # Calls of all ledgers, and how many each lane may have anyway.
_MARKS = 64  # Marks of one lane.


def timeline(diagnosis: Diagnosis, limit: int = 0, calls: int = CALLS) -> Timeline:
    """Return at most this many lanes (0: LANES), with at most this many calls of each ledger. Guilty ranks are kept first, then the lowest."""
    run = diagnosis.run
    guilty = {rank for finding in diagnosis.findings for rank in finding.ranks}
    candidates = _candidates(run, guilty)
    kept = candidates[: limit or LANES]
    calls_of_lane = min(calls, max(_FEW, _ALL // max(len(kept), 1)))
    lanes = _Lanes(diagnosis, guilty, calls_of_lane)
    shown = [lanes.lane(process) for _, process in kept if process is not None]
    begin = min((lane.begin for lane in shown), default=0.0)
    end = max((lane.end for lane in shown), default=0.0)
    shown += [_absent(run, rank, begin) for rank, process in kept if process is None]
    shown.sort(key=lambda lane: (lane.rank is None, lane.rank or 0, lane.host, lane.pid))
    return Timeline(begin, end, shown, len(shown), len(candidates))


def _candidates(run: Run, guilty: Set[int]) -> List[Tuple[int, Optional[LoggedProcess]]]:
    """Return the processes, and the guilty ranks without one: the guilty first, then by rank; those without a rank are last."""
    last = len(run.processes) + max(guilty, default=0)
    candidates: List[Tuple[int, Optional[LoggedProcess]]] = [(last if process.rank is None else process.rank, process) for process in run.processes]
    candidates += [(rank, None) for rank in sorted(guilty.intersection(run.missing))]
    return sorted(candidates, key=lambda pair: (pair[0] not in guilty, pair[0]))


def _absent(run: Run, rank: int, begin: float) -> Lane:
    """Return the empty lane of a guilty rank that wrote no file."""
    death = run.death(rank)
    return Lane(rank, death.host if death is not None else "", 0, True, [], begin, begin, rank_state.NO_FILE)


class _Lanes:
    """Makes the lanes of one run."""

    def __init__(self, diagnosis: Diagnosis, guilty: Set[int], calls: int) -> None:
        self._run, self._guilty, self._calls = diagnosis.run, guilty, calls
        self._finding_marks: Dict[str, List[Mark]] = {}
        for finding in diagnosis.findings:
            for evidence in filter(attrgetter("file"), finding.evidence):
                name = say("{rule} {slug}: {text}", rule=finding.id, slug=finding.slug, text=evidence.text)
                mark = Mark(0.0, FINDING, name, LogLine(evidence.file, evidence.line), evidence.site)
                self._finding_marks.setdefault(evidence.file, []).append(mark)

    def lane(self, process: LoggedProcess) -> Lane:
        part = extract(process, self._calls)
        seen = self._seen(process, part.moved if part is not None else process.last_when)
        is_guilty = process.rank in self._guilty
        spans = _with_last(self._spans(process, part, seen), is_guilty)
        times = [process.start_when or seen, seen, *(span.begin for span in spans), *(span.end for span in spans)]
        ending = rank_state.ending(process, self._run).words
        left_out = _unkept(process) + (part.left_out if part is not None else 0)
        marks = sorted(self._marks(process, part, seen, ending), key=attrgetter("when"))
        held = list(memory(process))
        return Lane(process.rank, process.host, process.pid, is_guilty, spans, min(times), max(times), ending, marks, left_out, held)

    def _seen(self, process: LoggedProcess, moved: float) -> float:
        """Return when the process was last seen: when it last wrote, when its launcher saw it gone, or now."""
        times = [process.last_when, moved]
        if process.end is None and process.death is not None:
            times.append(process.death.when + process.offset)
        if process.rank is not None and process.rank in self._run.running:
            times.append(self._run.read_at)
        return max(times)

    def _spans(self, process: LoggedProcess, part: Optional[LedgerExtract], seen: float) -> List[Span]:
        """Return what the process did, by time; longer spans first."""
        spans = list(of_calls(process, seen, self._lines(process.file)))
        if part is not None:
            spans += of_ledger(part, seen, self._lines(process.ledger_file))
        first = start(process, spans, seen)
        spans += [*([first] if first is not None else []), *of_hangs(process, seen)]
        return sorted(spans, key=lambda span: (span.begin, -span.end))

    def _lines(self, file: str) -> Set[int]:
        """Return the lines of a log, or the records of a ledger, that the findings point at."""
        return {mark.at.line for mark in self._finding_marks.get(file, ()) if mark.at is not None}

    def _marks(self, process: LoggedProcess, part: Optional[LedgerExtract], seen: float, ending: str) -> Iterator[Mark]:
        for failed in process.failures[:_MARKS]:
            yield Mark(failed.when, FAILURE, failed.said(300), failed.at, failed.site)
        marks = [*self._finding_marks.get(process.file, ()), *self._finding_marks.get(process.ledger_file, ())][:_MARKS]
        times = _times(process, part) if marks else {}
        for mark in marks:
            yield mark._replace(when=times.get(mark.at, seen))
        if process.end is not None or process.death is not None:
            yield Mark(seen, END, ending, process.last_at if process.end is not None else None)


def _with_last(spans: List[Span], is_guilty: bool) -> List[Span]:
    """Mark the last thing that a guilty rank did: what never ended, else what began last."""
    places = [place for place, span in enumerate(spans) if span.kind != HANG]
    if is_guilty and places:
        last = max(places, key=lambda place: (not spans[place].ended, spans[place].begin))
        spans[last] = spans[last]._replace(guilty=True)
    return spans


def _times(process: LoggedProcess, part: Optional[LedgerExtract]) -> Dict[Optional[LogLine], float]:
    """Return the time of each line of the log that is kept, and of each record of the ledger, whose number findings give as a line."""
    times: Dict[Optional[LogLine], float] = {}
    for call in process.every():
        times[call.at] = call.when
        if call.ended_at is not None and call.until is not None:
            times[call.ended_at] = call.until
    if part is not None:
        times.update((LogLine(process.ledger_file, record.number), part.when(record.entered_ns)) for record in part.records)
    return times


def _unkept(process: LoggedProcess) -> int:
    """Return how many calls of the log the reader has counted and not kept."""
    kinds = [process.kept.kinds[name] for name in DRAWN if name in process.kept.kinds]
    return sum(kind.all - kind.kept for kind in kinds)
