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
        return max(standing.lasted() for standing in self.here)


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
    records = standing.process.whole_ledger().records
    calls = [record for record in records if record.entered_ns < entered and not record.is_open]
    phases = [phase for phase in standing.ledger.phases if not phase.is_open and phase.entered_ns < entered]
    steps = [phase.left_ns for phase in phases if phase.name == BACKWARD]
    since = max([call.left_ns for call in calls] + steps, default=0)
    after = [phase for phase in phases if phase.entered_ns >= since]
    names = tuple(phase.name for phase in after if (phase.left_ns - phase.entered_ns) * _PART > entered - since)
    start = standing.wall(since) if since else standing.wall(entered)
    for suspected in reversed(standing.process.calls(schema.HangSuspected)):
        if start <= suspected.when <= standing.wall(entered):
            site = job_line(main_frames(suspected.begin.threads))
            return Before(start, names, site, suspected.at, suspected.when)
    return Before(start, names)


RULE = Rule(
    id="DDP651",
    slug="rank-came-late",
    cause="rank0_long_work_timeout",
    title="A rank reached a collective after the others had given up waiting for it there.",
    symptom="Some ranks end with a timeout, and the rank that they waited for fails a little later in the same call, because its peers are gone.",
    evidence="The ledgers: all ranks made the same call, and one began it after others had given up there; its stacks show what it did until then.",
    remedy="Share the work among all ranks, or give the group more time: init_process_group(…, timeout=datetime.timedelta(hours=2)).",
    restart="unknown",  # Work that is as long again, or a rank that was held up once.
    fix="timeout",
)


def check(run: Run) -> Iterator[Finding]:
    """Name the ranks that came late, when, and what they did until then."""
    lateness_of = late(run)
    if lateness_of is None or not only_waits(run):
        return
    first, last = lateness_of.here[0], lateness_of.there[0]
    done, ranks = before(last), [standing.rank for standing in lateness_of.there]
    lateness = say(
        "{who:capital} waited {stop} for {seconds:.1f} s and gave up at {gave_up}; {late} arrived there at {came}, {too_late:.1f} s too late.",
        who=named([standing.rank for standing in lateness_of.here]),
        stop=first.where(),
        seconds=lateness_of.waited,
        gave_up=clock(lateness_of.gave_up),
        late=named(ranks),
        came=clock(lateness_of.came),
        too_late=lateness_of.came - lateness_of.gave_up,
    )
    first_stop = say("{who} gave up {stop}", who=named([first.rank]), stop=_where(first))
    last_stop = say("{who} arrived late, and was {stop}", who=named([last.rank]), stop=_where(last))
    yield RULE.found(
        ranks=ranks,
        verdict=joined([lateness, _until_then(done, last, lateness_of)]),
        evidence=[_stop(first, first_stop), _stop(last, last_stop), *_seen(done, last)],
        when=lateness_of.gave_up,
        remedy=say(
            "Share the work of {who} among all ranks, or give the group more time: init_process_group(…, timeout=datetime.timedelta(hours=2)).",
            who=named(ranks),
        ),
        explains=explained(run),
    )


def _until_then(done: Before, standing: Standing, came_late: Late) -> str:
    """Say what a rank did before it came."""
    places: List[str] = [spoken_name(name) for name in done.phases]
    if done.site is not None:
        places.append(say("its own code{where}{within}", where=at(done.site), within=within(done.site.function)))
    who = named([standing.rank])
    seconds = came_late.came - done.since
    if not places:
        return say("Until then {who} made no call of torch.distributed for {seconds:.1f} s.", who=who, seconds=seconds)
    return say(
        "Until then {who} {who:was|were} in {places}; {who:it|they} had made no call of torch.distributed for {seconds:.1f} s.",
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
    text = say("{who} {who:was|were} here at {when}", who=named([standing.rank]), when=clock(done.when))
    return [Evidence(done.at.file, done.at.line, done.site, text)]
