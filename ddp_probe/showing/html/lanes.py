"""The run over time: a lane for each rank, with what it did as bars, and the same in words for those who do not see them."""

from typing import List, NamedTuple, Optional

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.judging.words import size
from ddp_probe.showing.html import lane_words
from ddp_probe.showing.html.axis import AxisTick, TimeScale, date, seconds, ticks
from ddp_probe.showing.html.bundling import PlacedSpan, placed
from ddp_probe.showing.html.quotes import LineLink, Quotes
from ddp_probe.showing.html.words import WORDS
from ddp_probe.showing.timeline import CALLS, FAILURE, HANG, KINDS, Lane, Mark, Timeline, timeline

LANES = 64  # Most lanes; of more ranks than this only the first FEW are shown.
FEW = 24
_SPANS = 5000  # Bars of the whole page.
_ROOM = 150  # About how many letters fit into the width of a lane.
_THIN = 0.4  # Of a letter.
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
    level: float = 1.0  # Of a bar's height.


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
    link: Optional[LineLink]  # To the line of what it did last.
    left_out: int


class LanesPart(NamedTuple):
    """All lanes, or none if nothing has a time."""

    lanes: List[LanePart]
    shown: int
    of: int
    kinds: List[str]
    ticks: List[AxisTick]
    length: float
    drawn: float  # How many seconds the lanes show: a little more than there are, so that marks at the end are whole.
    busy: float  # Until when ranks moved, if they stood still for most of the time; else 0.
    began: str
    lasted: str
    hosts: bool


def part(diagnosis: Diagnosis, quotes: Quotes) -> LanesPart:
    """Return the lanes of a run."""
    count = len(diagnosis.run.processes)
    limit = FEW if count > LANES else LANES
    most = max(_SPANS // max(min(count, limit), 1), 24)
    found = timeline(diagnosis, limit, min(CALLS, most))
    length = max(found.end - found.begin, 0.0)
    drawn = length * _MARGIN
    scale = TimeScale(found.begin, drawn)
    lanes = [_lane(lane, scale, most, quotes) for lane in found.lanes] if length > 0 else []
    present = {span.kind for lane in found.lanes for span in lane.spans}
    return LanesPart(
        lanes,
        len(lanes),
        found.of,
        [kind for kind in KINDS if kind in present] + ([MEMORY] if any(bar.kind == MEMORY for lane in lanes for bar in lane.bars) else []),
        ticks(length, drawn),
        length,
        drawn,
        _busy(found, length),
        date(found.begin),
        seconds(length),
        len({lane.host for lane in found.lanes if lane.host}) > 1,
    )


def _busy(found: Timeline, length: float) -> float:
    """Return how long it was until all ranks that stood still to the end did so, if the rest of the run is most of it; else 0."""
    stood = [span.begin for lane in found.lanes for span in lane.spans if span.kind == HANG and not span.ended]
    busy = (max(stood) - found.begin) * 1.05 if stood else 0.0
    return busy if 0 < busy < length / 4 else 0.0


def _lane(lane: Lane, scale: TimeScale, most: int, quotes: Quotes) -> LanePart:
    spans = placed(lane.spans, most, scale.length)
    rows = 1 + max((one.row for one in spans), default=0)
    memory = _memory(lane, scale, rows)
    last = max(lane.spans, key=lambda span: (span.kind != HANG, not span.ended, span.begin), default=None)
    return LanePart(
        "-" if lane.rank is None else str(lane.rank),
        lane.host,
        lane.guilty,
        rows + bool(memory),
        [_bar(one, scale) for one in spans] + memory,
        [_mark(mark, scale) for mark in lane.marks],
        lane_words.spent(lane.spans),
        seconds(lane.begin - scale.begin) if lane.spans else "",
        lane_words.last(last, scale) if last is not None else "",
        lane.ending,
        quotes.link(last.at) if last is not None and last.at is not None and (lane.guilty or last.guilty) else None,
        lane.left_out,
    )


def _bar(one: PlacedSpan, scale: TimeScale) -> LaneBar:
    span = one.span
    letters = _ROOM * scale.share(span.end - span.begin)
    label = lane_words.label(one)
    return LaneBar(
        scale.at(span.begin),
        scale.at(scale.begin + span.end - span.begin),
        one.row,
        span.kind,
        label if len(label) + 2 <= letters else "",
        lane_words.title(one, scale),
        "failed" if span.failed else "" if span.ended else "open",
        letters < _THIN,
        span.guilty,
    )


def _mark(mark: Mark, scale: TimeScale) -> LaneMark:
    kind = "failure" if mark.kind == FAILURE else mark.kind
    return LaneMark(scale.at(mark.when), kind, WORDS["mark_time"] % (mark.name, seconds(mark.when - scale.begin)))


def _memory(lane: Lane, scale: TimeScale, row: int) -> List[LaneBar]:
    """Return what the rank held over time as bars of different heights: on the device with the most memory, else on the host."""
    most = {what: max(max(one.sizes.values()) for one in lane.memory if one.what == what) for what in {one.what for one in lane.memory}}
    what = max(most, key=lambda device: (":" in device, most[device]), default="")
    marks = [one for one in lane.memory if one.what == what]
    bars = []
    for mark, until in zip(marks, [*(one.when for one in marks[1:]), lane.end]):
        held = next(iter(mark.sizes.values()))
        title = WORDS["memory_held"] % (size(held), what, seconds(mark.when - scale.begin))
        letters = _ROOM * scale.share(until - mark.when)
        label = size(held) if len(size(held)) + 2 <= letters else ""
        place, width = scale.at(mark.when), scale.at(scale.begin + until - mark.when)
        bars.append(LaneBar(place, width, row, MEMORY, label, title, "", letters < _THIN, False, held / max(most[what], 1)))
    return bars
