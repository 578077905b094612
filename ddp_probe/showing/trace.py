"""The run over time as JSON in the Trace Event Format, for Perfetto and chrome://tracing: a process for each rank, a track for each kind of span.

Times are whole microseconds since the run began, so that no reader's rounding makes two spans of one track overlap. The text is ASCII.
"""

import json
from datetime import datetime, timezone
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import ddp_probe
from ddp_probe.judging.judge import Diagnosis
from ddp_probe.judging.rule import Evidence
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Run
from ddp_probe.shared.schema import Site
from ddp_probe.showing import inventory, language, safe
from ddp_probe.showing.forms import Chunks
from ddp_probe.showing.timeline import COLLECTIVE, HANG, PHASE, Lane, Span, Timeline, timeline
from ddp_probe.wording.text import say
from ddp_probe.wording.words import counted

_NAMES = {PHASE: "phases", COLLECTIVE: "collectives", HANG: "standstill"}
_CALLS = "calls"
_DEEPEST = 32  # Spans inside each other on one track.
_Placed = Tuple[int, int, Span]


class Track(NamedTuple):
    """One row of a viewer: its name, and its spans with begin and end in microseconds since the run began."""

    name: str
    placed: List[_Placed]


def tracks(lane: Lane, since: float) -> Iterator[Track]:
    """Yield the tracks of a lane: its calls, phases, collectives, the times without movement; further ones for spans that overlap others."""
    by_name: Dict[str, List[_Placed]] = {name: [] for name in [_CALLS, *_NAMES.values()]}
    for span in lane.spans:
        by_name[_NAMES.get(span.kind, _CALLS)].append((micros(span.begin - since), micros(span.end - since), span))
    for name, placed in by_name.items():
        note = " (%s not shown)" % counted(lane.left_out, "call") if name == _NAMES[COLLECTIVE] and lane.left_out else ""
        for number, row in enumerate(_apart(placed)):
            yield Track(name + (note if not number else " %d" % (number + 1)), row)


def _apart(placed: List[_Placed]) -> List[List[_Placed]]:
    """Return the spans on as many tracks as they need."""
    rows: List[List[_Placed]] = []
    open_: List[List[int]] = []  # For each row, the ends of the spans that would contain the next one.
    for placed_span in sorted(placed, key=lambda item: (item[0], -item[1])):
        number = next((number for number, ends in enumerate(open_) if _fits(placed_span, ends)), len(rows))
        if number == len(rows):
            rows.append([])
            open_.append([])
        rows[number].append(placed_span)
        open_[number].append(placed_span[1])
    return rows


def _fits(placed_span: _Placed, ends: List[int]) -> bool:
    """Tell whether a span is apart from those of a row, or inside the innermost that has not ended; drop those that have."""
    while ends and ends[-1] <= placed_span[0]:
        ends.pop()
    return not ends or (placed_span[1] <= ends[-1] and len(ends) < _DEEPEST)


def micros(seconds: float) -> int:
    """Return seconds as whole microseconds."""
    return round(seconds * 1e6)


CALLS = 2048  # Calls of one rank: as many as its ledger holds, if few ranks are shown.
_LONGEST = 300  # Characters of a name.
_STEPS, _FEWEST_STEPS = 4096, 16  # Steps of all ranks, and of each rank anyway.
_TRACKS = 100  # Numbers for the tracks of one process.
_RUN = 1  # The number of the process that stands for the whole run if there is none.
_ENCODE = json.JSONEncoder(separators=(",", ":")).encode
_Event = Dict[str, Any]


def chunks(diagnosis: Diagnosis) -> Chunks:
    """Yield the text; return what is left out of it."""
    times = timeline(diagnosis, calls=CALLS)
    yield '{"otherData":%s,"traceEvents":[' % _ENCODE(_about(diagnosis, times))
    between = "\n"
    for event in _events(diagnosis, times):
        yield between + _ENCODE(event)
        between = ",\n"
    yield "\n]}\n"
    return _left_out(times)


def _about(diagnosis: Diagnosis, times: Timeline) -> Dict[str, str]:
    began = datetime.fromtimestamp(times.begin, tz=timezone.utc).isoformat() if 0 <= times.begin < 1e11 else ""
    facts = {"run": safe.line(diagnosis.run.name), "verdict": diagnosis.verdict, "begin": began, "left out": _left_out(times)}
    return {"form": "ddp_probe trace", "version": ddp_probe.__version__, **{name: text for name, text in facts.items() if text}}


def _left_out(times: Timeline) -> str:
    ranks = "%d of %d ranks are in it" % (times.shown, times.of) if times.shown < times.of else ""
    calls = sum(lane.left_out for lane in times.lanes)
    return "; ".join(filter(None, [ranks, "%s not shown" % counted(calls, "earlier call") if calls else ""]))


def _events(diagnosis: Diagnosis, times: Timeline) -> Iterator[_Event]:
    texts: Set[str] = set()
    numbers = _numbers(times.lanes)
    args = _Args(diagnosis.run)
    for order, (lane, number) in enumerate(zip(times.lanes, numbers)):
        yield from _process(number, order, lane)
        for place, track in enumerate(tracks(lane, times.begin)):
            yield from _thread(number, number * _TRACKS + min(place + 1, _TRACKS - 1), place, track, args)
        yield from _counters(diagnosis.run, lane, number, times)
        for mark in lane.marks:
            texts.add(mark.name)
            when = micros(mark.when - times.begin)
            yield {**_instant(mark.kind, mark.name, when, number), "s": "p", "args": args.places(mark.site, mark.at)}
        for held in lane.memory:
            name = safe.line("memory of %s" % held.what, _LONGEST)
            yield {"ph": "C", "name": name, "cat": "memory", "ts": micros(held.when - times.begin), "pid": number, "args": held.sizes}
    yield from _findings(diagnosis, times, texts, numbers, args)


def _numbers(lanes: Sequence[Lane]) -> List[int]:
    """Return the number of each process: its pid, unless two hosts used the same one or it is unknown."""
    pids = [lane.pid for lane in lanes]
    return pids if len(set(pids)) == len(pids) and min(pids, default=1) > 0 else [place + 1 for place in range(len(pids))]


def _process(number: int, order: int, lane: Lane) -> Iterator[_Event]:
    """Yield the name and the place of a process."""
    rank = "rank %d" % lane.rank if lane.rank is not None else "a process without a rank"
    name = ", ".join(
        filter(None, [rank, lane.host, "pid %d" % lane.pid if lane.pid else "", "named by a finding" if lane.guilty else "", lane.ending])
    )
    yield _metadata("process_name", number, {"name": safe.line(name, _LONGEST)})
    yield _metadata("process_sort_index", number, {"sort_index": order})
    if lane.left_out:
        yield _metadata("process_labels", number, {"labels": "%s not shown" % counted(lane.left_out, "earlier call")})


def _thread(number: int, thread: int, place: int, track: Track, args: "_Args") -> Iterator[_Event]:
    yield {**_metadata("thread_name", number, {"name": track.name}), "tid": thread}
    yield {**_metadata("thread_sort_index", number, {"sort_index": place}), "tid": thread}
    for begin, end, span in track.placed:
        event: _Event = {"ph": "X", "name": _named(span), "cat": span.kind, "ts": begin, "dur": end - begin, "pid": number, "tid": thread}
        if span.guilty or span.failed:
            event["cname"] = "terrible"
        yield {**event, "args": args.of_span(span)}


def _counters(run: Run, lane: Lane, number: int, timeline: Timeline) -> Iterator[_Event]:
    """Yield what the latest steps of a rank took, by their parts, and how long it waited in them: two counter tracks in milliseconds."""
    process = run.ranks.get(-1 if lane.rank is None else lane.rank)
    kept = process.ledger if process is not None else None
    if process is None or kept is None or not kept.steps.numbers:
        return
    steps = kept.steps.latest(max(_FEWEST_STEPS, _STEPS // max(timeline.shown, 1)))
    when = kept.when(steps.ended_ns) + process.offset - sum(steps.took) / 1e6 - timeline.begin
    for place, (took, elsewhere) in enumerate(zip(steps.took, steps.elsewhere())):
        times = {name: column[place] / 1e3 for name, column in steps.parts.items()}
        about = {"ph": "C", "cat": "steps", "ts": max(0, micros(when)), "pid": number}
        yield {**about, "name": "step, ms", "args": {**times, "elsewhere": elsewhere / 1e3}}
        yield {**about, "name": "waiting, ms", "args": {"in collectives and backward": times["backward"] + times["waiting"]}}
        when += took / 1e6


def _metadata(name: str, number: int, args: Dict[str, Any]) -> _Event:
    return {"ph": "M", "name": name, "pid": number, "args": args}


def _named(span: Span) -> str:
    return safe.line(span.name, _LONGEST) + ("" if span.ended else " (has not returned)")


class _Args:
    """Makes what viewers show of one event besides its times."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._names: Dict[str, str] = {}  # Thousands of events are from one file.

    def of_span(self, span: Span) -> Dict[str, Any]:
        """Return what is known of a span; what is as usual is left out."""
        args: Dict[str, Any] = self.places(span.site, span.at)
        if span.number:
            args["number"] = span.number
        if span.detail:
            args["detail"] = safe.line(language.english().text(span.detail), _LONGEST)
        if not span.ended:
            args["ended"] = False
        args.update({name: True for name in ("failed", "guilty") if getattr(span, name)})
        return args

    def places(self, site: Optional[Site], at: Optional[LogLine]) -> Dict[str, Any]:
        """Return the line of the job and the line of the log."""
        by_place = {}
        if site is not None and site.file:
            by_place["site"] = safe.line("%s:%d%s" % (site.file, site.line, " in %s" % site.function if site.function else ""))
        if at is not None and at.file:
            if at.file not in self._names:
                self._names[at.file] = safe.line(inventory.near(at.file, self._run))
            by_place["log"] = "%s:%d" % (self._names[at.file], at.line)
        return by_place


def _instant(kind: str, name: str, when: int, number: int) -> _Event:
    return {
        "ph": "i",
        "name": safe.line(language.english().text(name), _LONGEST),
        "cat": kind,
        "ts": when,
        "pid": number,
        "tid": number * _TRACKS + 1,
    }


def _findings(diagnosis: Diagnosis, times: Timeline, texts: Set[str], numbers: List[int], args: _Args) -> Iterator[_Event]:
    """Yield the findings that point at no process that is shown: as moments of the whole run."""
    number = numbers[0] if numbers else _RUN
    if not numbers and diagnosis.findings:
        yield _metadata("process_name", number, {"name": "the run, which has no times"})
    for finding in diagnosis.findings:
        begins = "%s %s: " % (finding.id, finding.slug)
        if not any(text.startswith(begins) for text in texts):
            name = say("{rule} {slug}: {text}", rule=finding.id, slug=finding.slug, text=finding.verdict)
            when = micros(min(max(finding.when, times.begin), times.end) - times.begin)
            first = next(iter(finding.evidence), Evidence())
            places = args.places(first.site, LogLine(first.file, first.line))
            yield {**_instant("finding", name, when, number), "s": "g", "args": places}
