"""The run over time: a lane for each rank, with what it did as bars, and the same in words for those who do not see them."""

import os
from math import floor, log10
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.shared.schema import Site
from ddp_probe.showing.html.page_words import WORDS
from ddp_probe.showing.html.placed_spans import PlacedSpan, placed
from ddp_probe.showing.html.quotes import LineLink, Quotes
from ddp_probe.showing.language import ENGLISH, Language
from ddp_probe.showing.timeline import CALLS, FAILURE, HANG, KINDS, Lane, Mark, Span, Timeline, timeline
from ddp_probe.wording.words import moment, size
from ddp_probe.wording.words import spans as rank_spans

_TICKS = 8
_LAST = 0.96  # Share of the axis: a later time has no room for its text.


class AxisTick(NamedTuple):
    """A time on the axis."""

    x: str
    text: str


class TimeScale:
    """Turns times into percent of the run."""

    def __init__(self, begin: float, length: float) -> None:
        self.begin, self.length = begin, length

    def at(self, when: float) -> str:
        """Return the position of a time."""
        return "%.4f%%" % (100 * self.share(when - self.begin))

    def share(self, lasted: float) -> float:
        """Return how much of the run a length is."""
        return max(0.0, min(lasted / self.length, 1.0)) if self.length > 0 else 0.0


def axis_ticks(length: float, drawn: float) -> List[AxisTick]:
    """Return times on the axis, at round numbers."""
    if not 0 < length < float("inf"):
        return []
    least = length / _TICKS
    power = 10.0 ** floor(log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)
    count = int(min(length, _LAST * drawn) / step) + 1
    return [AxisTick("%.4f%%" % (100 * number * step / drawn), "%g s" % (number * step)) for number in range(count)]


def seconds(number: float) -> str:
    """Return a time in the unit that fits it."""
    if number < 0:
        return "-" + seconds(-number)
    if number < 1e-3:
        return "%.0f us" % (number * 1e6)
    if number < 1:
        return "%.3g ms" % (number * 1e3)
    if number < 120:
        return "%.3g s" % number
    whole = int(number)
    return "%d min %02d s" % (whole // 60, whole % 60) if number < 7200 else "%d h %02d min" % (whole // 3600, whole // 60 % 60)


# The words of the lanes: on their bars, in the bars' tooltips, and in the table.


def label_of(bar: PlacedSpan, say: Language) -> str:
    """Return what is written on a bar; if a finding points at it, with the line of the job."""
    span = bar.span
    name = name_of(bar, say)
    return "%s  %s" % (name, _short(span.site)) if span.guilty and span.site is not None else name


def name_of(span: PlacedSpan, say: Language) -> str:
    """Return the name of a bar."""
    return span.span.name if span.size == 1 else say(WORDS["bar_many"]) % (span.size, say(WORDS["kind_" + span.span.kind]))


def title_of(bar: PlacedSpan, scale: TimeScale, say: Language) -> str:
    """Return all that is known of a bar."""
    span = bar.span
    how = say(WORDS["bar_open"]) if not span.ended else say(WORDS["bar_failed"]) if span.failed else ""
    parts = [
        name_of(bar, say),
        say(WORDS["bar_time"]) % (seconds(span.end - span.begin), seconds(span.begin - scale.begin)),
        how,
        say.text(span.detail),
    ]
    parts += ["%s:%d" % (span.site.file, span.site.line)] if span.site is not None and span.site.file else []
    return "; ".join(text for text in parts if text)


def last_words(span: Span, scale: TimeScale, say: Language) -> str:
    """Return what a process did last."""
    how = say(WORDS["last_open"]) % span.name if not span.ended else say(WORDS["last_failed"]) % span.name if span.failed else span.name
    place = say(WORDS["last_at"]) % _short(span.site) if span.site is not None and span.site.file else ""
    return how + place + say(WORDS["last_from"]) % seconds(span.begin - scale.begin)


def _short(site: Optional[Site]) -> str:
    return "%s:%d" % (os.path.basename(site.file), site.line) if site is not None else ""


def spent(spans: Sequence[Span], say: Language) -> str:
    """Return how often and how long a process was in each kind."""
    times: Dict[str, List[float]] = {}
    for span in spans:
        times.setdefault(span.kind, []).append(span.end - span.begin)
    return "; ".join(_spent(say(WORDS["kind_" + kind]), those, say) for kind, those in times.items())


def _spent(kind: str, times: List[float], say: Language) -> str:
    if len(times) == 1:
        return say(WORDS["spent_once"]) % (kind, seconds(times[0]))
    return say(WORDS["spent_often"]) % (kind, len(times), seconds(sum(times)))


LANES = 64  # Most lanes; of more ranks than this only the first FEW are shown.
FEW = 24
_ALIKE = 3  # Fewest lanes that become one.
_SPANS = 5000  # Bars of the whole page.
_ROOM = 150  # About how many letters fit into the width of a lane.
_THIN = 0.4  # Width of a letter.
_MARGIN = 1.01


class LaneBar(NamedTuple):
    """A bar; x and width are in percent of the run."""

    x: str
    width: str
    row: int
    kind: str
    label: str  # Empty if there is no room for it.
    title: str
    state: str  # failed, open or an empty string.
    thin: bool  # Less than a few points wide: its edge alone is seen.
    guilty: bool
    level: float = 1.0  # Share of a bar's height.


MEMORY = "memory"


class LaneMark(NamedTuple):
    """A moment that is marked; x is in percent of the run."""

    x: str
    kind: str
    title: str


class LanePart(NamedTuple):
    """One process."""

    who: str
    host: str
    guilty: bool
    rows: int
    bars: List[LaneBar]
    marks: List[LaneMark]
    words: str
    began: str
    last: str
    ending: str
    link: Optional[LineLink]  # Leads to the line of its last action.
    left_out: int


class LaneGroup(NamedTuple):
    """Ranks whose lanes end alike: one lane that opens. A lane that a finding names is alone."""

    who: str
    lanes: List[LanePart]


class LanesPart(NamedTuple):
    """All lanes, or none if nothing has a time."""

    lanes: List[LanePart]
    groups: List[LaneGroup]
    shown: int
    of: int
    kinds: List[str]
    ticks: List[AxisTick]
    length: float
    drawn: float  # How many seconds the lanes show: a little more than the run took, so that marks at the end are whole.
    busy: float  # Until when ranks moved, if they stood still for most of the time; else 0.
    began: str
    lasted: str
    hosts: bool


def part(diagnosis: Diagnosis, quotes: Quotes, say: Language = ENGLISH) -> LanesPart:
    """Return the lanes of a run."""
    count = len(diagnosis.run.processes)
    limit = FEW if count > LANES else LANES
    most = max(_SPANS // max(min(count, limit), 1), 24)
    times = timeline(diagnosis, limit, min(CALLS, most))
    length = max(times.end - times.begin, 0.0)
    drawn = length * _MARGIN
    scale = TimeScale(times.begin, drawn)
    lanes = [_lane(lane, scale, most, quotes, say) for lane in times.lanes] if length > 0 else []
    present = {span.kind for lane in times.lanes for span in lane.spans}
    return LanesPart(
        lanes,
        _grouped(times.lanes, lanes) if lanes else [],
        len(lanes),
        times.of,
        [kind for kind in KINDS if kind in present] + ([MEMORY] if any(bar.kind == MEMORY for lane in lanes for bar in lane.bars) else []),
        axis_ticks(length, drawn),
        length,
        drawn,
        _busy(times, length),
        say.text(moment(times.begin)) if times.begin > 0 else "",
        seconds(length),
        len({lane.host for lane in times.lanes if lane.host}) > 1,
    )


def _grouped(lanes: Sequence[Lane], parts: Sequence[LanePart]) -> List[LaneGroup]:
    """Return the lanes that stand out, then those that end alike, together if they are several."""
    alike: Dict[Any, List[int]] = {}
    for number, lane in enumerate(lanes):
        alike.setdefault(_end_of(lane), []).append(number)
    groups = [group for numbers in alike.values() for group in ([numbers] if len(numbers) >= _ALIKE else [[number] for number in numbers])]
    groups.sort(key=lambda group: (not lanes[group[0]].guilty, len(group), group[0]))
    return [LaneGroup(_who([lanes[number] for number in group], parts[group[0]].who), [parts[number] for number in group]) for group in groups]


def _who(group: Sequence[Lane], first: str) -> str:
    return rank_spans([lane.rank or 0 for lane in group]) if len(group) > 1 else first


def _end_of(lane: Lane) -> Any:
    """Return what lanes of a group have in common: how they ended, what was last in them, and what else is in them."""
    if lane.guilty or lane.rank is None:
        return lane.rank, lane.pid
    last = max(lane.spans, key=lambda span: (span.kind != HANG, not span.ended, span.begin), default=None)
    of_last = (last.kind, last.name, _short(last.site), last.ended, last.failed) if last is not None else ()
    return lane.ending, of_last, frozenset(span.kind for span in lane.spans), frozenset(mark.kind for mark in lane.marks)


def _busy(times: Timeline, length: float) -> float:
    """Return how long it was until all ranks that stood still to the end did so, if the rest of the run is most of it; else 0."""
    stood = [span.begin for lane in times.lanes for span in lane.spans if span.kind == HANG and not span.ended]
    busy = (max(stood) - times.begin) * 1.05 if stood else 0.0
    return busy if 0 < busy < length / 4 else 0.0


def _lane(lane: Lane, scale: TimeScale, most: int, quotes: Quotes, say: Language) -> LanePart:
    spans = placed(lane.spans, most, scale.length)
    rows = 1 + max((span.row for span in spans), default=0)
    memory = _memory(lane, scale, rows, say)
    last = max(lane.spans, key=lambda span: (span.kind != HANG, not span.ended, span.begin), default=None)
    return LanePart(
        "-" if lane.rank is None else str(lane.rank),
        lane.host,
        lane.guilty,
        rows + bool(memory),
        [_bar(span, scale, say) for span in spans] + memory,
        [_mark(mark, scale, say) for mark in lane.marks],
        spent(lane.spans, say),
        seconds(lane.begin - scale.begin) if lane.spans else "",
        last_words(last, scale, say) if last is not None else "",
        say.state(lane.ending),
        quotes.link(last.at) if last is not None and last.at is not None and (lane.guilty or last.guilty) else None,
        lane.left_out,
    )


def _bar(placed_span: PlacedSpan, scale: TimeScale, say: Language) -> LaneBar:
    span = placed_span.span
    letters = _ROOM * scale.share(span.end - span.begin)
    label = label_of(placed_span, say)
    return LaneBar(
        scale.at(span.begin),
        scale.at(scale.begin + span.end - span.begin),
        placed_span.row,
        span.kind,
        label if len(label) + 2 <= letters else "",
        title_of(placed_span, scale, say),
        "failed" if span.failed else "" if span.ended else "open",
        letters < _THIN,
        span.guilty,
    )


def _mark(mark: Mark, scale: TimeScale, say: Language) -> LaneMark:
    kind = "failure" if mark.kind == FAILURE else mark.kind
    title = say(WORDS["mark_time"]) % (say.text(mark.name), seconds(mark.when - scale.begin))
    return LaneMark(scale.at(mark.when), kind, title)


def _memory(lane: Lane, scale: TimeScale, row: int, say: Language) -> List[LaneBar]:
    """Return what the rank held over time as bars of different heights: on the device with the most memory, else on the host."""
    most = {what: max(max(mark.sizes.values()) for mark in lane.memory if mark.what == what) for what in {mark.what for mark in lane.memory}}
    what = max(most, key=lambda device: (":" in device, most[device]), default="")
    marks = [mark for mark in lane.memory if mark.what == what]
    bars = []
    for mark, until in zip(marks, [*(mark.when for mark in marks[1:]), lane.end]):
        held = next(iter(mark.sizes.values()))
        title = say(WORDS["memory_held"]) % (size(held), what, seconds(mark.when - scale.begin))
        letters = _ROOM * scale.share(until - mark.when)
        label = size(held) if len(size(held)) + 2 <= letters else ""
        place, width = scale.at(mark.when), scale.at(scale.begin + until - mark.when)
        bars.append(LaneBar(place, width, row, MEMORY, label, title, "", letters < _THIN, False, held / max(most[what], 1)))
    return bars
