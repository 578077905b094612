"""A rank reached a collective after the others had given up waiting for it there."""

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from ddp_probe.judging.ledgers import Standing, called, spoken_name, standings_of
from ddp_probe.judging.parted import explained, only_waits, split
from ddp_probe.judging.rule import Evidence, Finding, Rule
from ddp_probe.reading.job_line import job_line
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Run
from ddp_probe.reading.rank_stacks import main_frames
from ddp_probe.reading.whole_ledger import Phase, Record
from ddp_probe.shared import schema
from ddp_probe.shared.ledger_schema import PAIRED
from ddp_probe.standing.stalls import BACKWARD
from ddp_probe.wording.text import joined, say
from ddp_probe.wording.words import at, clock, listed, named, within

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
    """What a rank did before it came: since when it made no call, the phases of that time, and a line of its code if its watcher wrote one."""

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
    for standing in standings_of(run).ranks.values():
        place = _place(standing)
        if place is not None:
            places.setdefault(place, []).append(standing)
    late_arrivals = [_late(standings) for standings in places.values()]
    return min(filter(None, late_arrivals), key=lambda arrival: arrival.gave_up, default=None)


def _late(standings: List[Standing]) -> Optional[Late]:
    ended = [_left(standing) for standing in standings if standing.waited_out and _left(standing)]
    gave_up = min(ended, default=0.0)
    here = tuple(standing for standing in standings if standing.since() <= gave_up)
    there = tuple(standing for standing in standings if standing.since() > gave_up)
    return Late(here, there, gave_up, min(one.since() for one in there)) if ended and here and there else None


def _stopped(standing: Standing) -> Union[Record, Phase, None]:
    """Return the call, or the backward pass, at which a rank came to its end."""
    return standing.inside or (standing.phase if standing.in_backward else None)


def _place(standing: Standing) -> Optional[Tuple[str, int]]:
    stop = _stopped(standing)
    if isinstance(stop, Record):
        return (stop.group.id, stop.seq) if stop.group is not None and stop.seq and stop.op not in PAIRED else None
    return ("", stop.times) if stop is not None else None


def _left(standing: Standing) -> float:
    stop = _stopped(standing)
    return standing.wall(stop.left_ns) if stop is not None and not stop.is_open else 0.0


def before(standing: Standing) -> Before:
    """Return what a rank did between its call before and this one."""
    stop = _stopped(standing)
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


RULE = Rule(
    id="DDP651",
    slug="rank-came-late",
    cause="rank0_long_work_timeout",
    title="A rank reached a collective after the others had given up waiting for it there.",
    symptom="Some ranks end with a timeout, and the rank that they waited for fails a little later in the same call, because its peers are gone.",
    evidence="The ledgers: all ranks made the same call, and one began it after others had given up there; its stacks show what it did until then.",
    remedy="Share the work among all ranks, or give the group more time: init_process_group(…, timeout=datetime.timedelta(hours=2)).",
    fix="timeout",
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks that came late, when, and what they did until then."""
    found = late(run)
    if found is None or not only_waits(run):
        return
    first, last = found.here[0], found.there[0]
    done, ranks = before(last), [standing.rank for standing in found.there]
    lateness = say(
        "{who:capital} waited {stop} for {seconds:.1f} s and gave up at {gave_up}; {late} arrived there at {came}, {too_late:.1f} s too late.",
        who=named([standing.rank for standing in found.here]),
        stop=first.where(),
        seconds=found.waited,
        gave_up=clock(found.gave_up),
        late=named(ranks),
        came=clock(found.came),
        too_late=found.came - found.gave_up,
    )
    first_stop = say("{who} gave up {stop}", who=named([first.rank]), stop=_where(first))
    last_stop = say("{who} arrived late, and was {stop}", who=named([last.rank]), stop=_where(last))
    yield RULE.found(
        ranks=ranks,
        verdict=joined([lateness, _until_then(done, last, found)]),
        evidence=[_stop(first, first_stop), _stop(last, last_stop), *_seen(done, last)],
        when=found.gave_up,
        remedy=say(
            "Share the work of {who} among all ranks, or give the group more time: init_process_group(…, timeout=datetime.timedelta(hours=2)).",
            who=named(ranks),
        ),
        explains=explained(run),
    )


def _until_then(done: Before, standing: Standing, found: Late) -> str:
    """Say what a rank did before it came."""
    places: List[str] = [spoken_name(name) for name in done.phases]
    if done.site is not None:
        places.append(say("its own code{where}{within}", where=at(done.site), within=within(done.site.function)))
    who = named([standing.rank])
    seconds = found.came - done.since
    if not places:
        return say("Until then {who} made no call of torch.distributed for {seconds:.1f} s.", who=who, seconds=seconds)
    return say(
        "Until then {who} was in {places}; it had made no call of torch.distributed for {seconds:.1f} s.",
        who=who,
        places=listed(places, 3),
        seconds=seconds,
    )


def _where(standing: Standing) -> str:
    return called(standing.inside) if standing.inside is not None else standing.where()


def _stop(standing: Standing, text: str) -> Evidence:
    record = standing.inside
    return Evidence(standing.ledger.path, record.number if record is not None else 1, standing.site, text)


def _seen(done: Before, standing: Standing) -> List[Evidence]:
    if done.site is None or done.at is None:
        return []
    text = say("{who} was here at {when}", who=named([standing.rank]), when=clock(done.when))
    return [Evidence(done.at.file, done.at.line, done.site, text)]
