"""Which ranks came to a call after others had given up waiting for them there, and what they did until then.

In the end all ranks have made the same calls: the ledgers differ in time alone.
"""

from typing import Dict, List, NamedTuple, Optional, Tuple, Union

from ddp_probe.judging._splits import split
from ddp_probe.judging.ledgers import Standing, view
from ddp_probe.reading.job_line import job_line
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Run
from ddp_probe.reading.rank_stacks import main_frames
from ddp_probe.reading.splits import BACKWARD
from ddp_probe.reading.whole_ledger import Phase, Record
from ddp_probe.shared import schema
from ddp_probe.shared.ledger_schema import PAIRED

_PART = 5  # A phase is named if it took a fifth of the time.


class Late(NamedTuple):
    """Who waited in which call until when, and who came after that."""

    here: Tuple[Standing, ...]
    there: Tuple[Standing, ...]
    gave_up: float
    came: float

    @property
    def waited(self) -> float:
        """Return for how long the others waited."""
        return max(one.lasted() for one in self.here)


class Before(NamedTuple):
    """What a rank did before it came: since when it made no call, the phases of that time, and a line of its own code if its watcher wrote one."""

    since: float
    phases: Tuple[str, ...] = ()
    site: Optional[schema.Site] = None
    at: Optional[LogLine] = None
    when: float = 0.0


def late(run: Run) -> Optional[Late]:
    """Return the first call to which ranks came too late; None if the ranks part otherwise, or do not part."""
    if split(run) is not None:
        return None
    places: Dict[Tuple[str, int], List[Standing]] = {}
    for standing in view(run).ranks.values():
        place = _place(standing)
        if place is not None:
            places.setdefault(place, []).append(standing)
    found = [one for standings in places.values() for one in [_late(standings)] if one is not None]
    return min(found, key=lambda one: one.gave_up, default=None)


def _late(standings: List[Standing]) -> Optional[Late]:
    ended = [_left(standing) for standing in standings if standing.waited_out and _left(standing)]
    gave_up = min(ended, default=0.0)
    here = tuple(standing for standing in standings if standing.since() <= gave_up)
    there = tuple(standing for standing in standings if standing.since() > gave_up)
    return Late(here, there, gave_up, min(one.since() for one in there)) if ended and here and there else None


def _stop(standing: Standing) -> Union[Record, Phase, None]:
    """Return the call, or the backward pass, at which a rank came to its end."""
    return standing.inside or (standing.phase if standing.in_backward else None)


def _place(standing: Standing) -> Optional[Tuple[str, int]]:
    stop = _stop(standing)
    if isinstance(stop, Record):
        return (stop.group.id, stop.seq) if stop.group is not None and stop.seq and stop.op not in PAIRED else None
    return ("", stop.times) if stop is not None else None


def _left(standing: Standing) -> float:
    stop = _stop(standing)
    return standing.wall(stop.left_ns) if stop is not None and not stop.is_open else 0.0


def before(standing: Standing) -> Before:
    """Return what a rank did between its call before and this one."""
    stop = _stop(standing)
    entered = stop.entered_ns if stop is not None else 0
    calls = [one for one in standing.process.whole_ledger().records if one.entered_ns < entered and not one.is_open]
    phases = [one for one in standing.ledger.phases if not one.is_open and one.entered_ns < entered]
    steps = [one.left_ns for one in phases if one.name == BACKWARD]
    since = max([one.left_ns for one in calls] + steps, default=0)
    names = tuple(one.name for one in phases if one.entered_ns >= since and (one.left_ns - one.entered_ns) * _PART > entered - since)
    start = standing.wall(since) if since else standing.wall(entered)
    for told in reversed(standing.process.calls(schema.HangSuspected)):
        if start <= told.when <= standing.wall(entered):
            site = job_line(main_frames(told.begin.threads))
            return Before(start, names, site, told.at, told.when)
    return Before(start, names)
