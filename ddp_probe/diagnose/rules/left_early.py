"""A rank ended in good order while the others still needed it."""

from typing import Iterator, List, Optional, Tuple, Union

from ddp_probe import schema
from ddp_probe.diagnose._waits import PEER_GONE, joined, stood, waited
from ddp_probe.diagnose._who import place, ranks
from ddp_probe.diagnose.rule import Evidence, Example, Finding, Rule, Undecided, failed, line, shown
from ddp_probe.diagnose.rules.recorded import left_early as recorded
from ddp_probe.diagnose.words import named, spans
from ddp_probe.read.model import Failed, LoggedCall, LoggedProcess, Run

_STEPS = "Print the number of batches of each rank, len(loader), before the loop: the ranks that ended have fewer."

RULE = Rule(
    id="DDP617",
    slug="left-early",
    cause="rank_stopped_participating",
    title="A rank ended in good order while the others still needed it.",
    symptom="'Connection closed by peer', 'Connection reset by peer' or a timeout on the others, and no traceback on the rank that left.",
    evidence="The rank's file ends without a failure before the others lose it. Whether it had fewer batches or decided to stop, the events do not tell.",
    remedy="Let all ranks leave together: give them the same number of batches (DistributedSampler, drop_last=True); where one decides to stop, broadcast the decision (torch.distributed.broadcast of a flag), and stop everywhere in the same step.",
    needs=("process.end",),
    needs_all=True,
)

EXAMPLES = (
    Example(
        "Rank 1 stops early on its own.",
        recorded.RANK_1_STOPS_EARLY_ON_ITS_OWN,
        ranks=(1,),
        job="12_sys_exit_of_one_rank",
    ),
    Example(
        "Rank 1 fails with an exception of its own.",
        recorded.RANK_1_FAILS_WITH_EXCEPTION_OF_ITS,
        answer="clear",
    ),
    Example(
        "Most ranks have left, and one goes on.",
        """
{"event":"dist.init_process_group","phase":"begin","rank":0,"span":1}
{"event":"dist.init_process_group","phase":"end","rank":0,"span":1}
{"event":"dist.init_process_group","phase":"begin","rank":1,"span":1}
{"event":"dist.init_process_group","phase":"end","rank":1,"span":1}
{"event":"dist.init_process_group","phase":"begin","rank":2,"span":1}
{"event":"dist.init_process_group","phase":"end","rank":2,"span":1}
{"event":"process.end","rank":0}
{"event":"process.end","rank":1}
{"event":"process.end","rank":2,"exit_code":1,"uncaught":true,"failure":{"type":"RuntimeError","message":"Connection closed by peer"}}
""",
        answer="undecided",
    ),
)


class _Left:
    """A rank that ended in good order, and when it left the group."""

    def __init__(self, process: LoggedProcess) -> None:
        self.process = process
        self.leave: Optional[LoggedCall[schema.DestroyProcessGroup]] = process.final(schema.DestroyProcessGroup)
        self.when = self.leave.when if self.leave is not None else process.last_when


def check(run: Run) -> Iterator[Union[Finding, Undecided]]:
    """Take the ranks that ended well before others lost a peer, where nobody failed for a reason of its own."""
    lost, own = _failures(run)
    if not lost or own or any(death.signal not in ("", "SIGTERM") for death in run.deaths):
        return
    first = lost[0]
    gone = [left for left in (_Left(process) for process in run.processes if _ended_well(process)) if left.when <= first.when]
    if not gone:
        return
    guilty = ranks(left.process for left in gone)
    if len(guilty) * 2 > len(run.ranks):
        yield RULE.undecided(
            "Ranks %s had ended in good order when rank %s still needed them, %s; which of them had the wrong number of steps, the logs do not say."
            % (spans(guilty), first.rank, stood(first)),
            then=_STEPS,
        )
        return
    earliest = min(gone, key=lambda left: left.when)
    yield RULE.found(
        ranks=guilty,
        verdict="%s ended without an exception%s%s; rank %s was still %s and lost it %.0f ms later."
        % (_who(guilty), _code(run, earliest), _how(earliest), first.rank, stood(first), (first.when - earliest.when) * 1000),
        evidence=[*_evidence(earliest), *(failed(failure) for failure in lost[:3])],
        when=earliest.when,
        explains=lost,
        remedy=_remedy(earliest),
    )


def _failures(run: Run) -> Tuple[List[Failed], bool]:
    """Return who lost a peer, and whether anybody failed otherwise."""
    fatal = [failure for failure in run.failures if failure.fatal]
    lost = [
        failure
        for failure in fatal
        if failure.process is not None and joined(failure.process) and (failure.consequence == PEER_GONE or waited(failure))
    ]
    return lost, any(not failure.consequence and not waited(failure) for failure in fatal)


def _ended_well(process: LoggedProcess) -> bool:
    return process.rank is not None and process.ended is not None and process.ended.failure is None and not process.ended.uncaught and joined(process)


def _who(guilty: List[int]) -> str:
    text = named(guilty)
    return text[:1].upper() + text[1:]


def _code(run: Run, left: _Left) -> str:
    death = run.death(left.process.rank) if left.process.rank is not None else None
    ended = left.process.ended
    code = death.exit_code if death is not None and death.exit_code is not None else getattr(ended, "exit_code", None)
    by = ", by sys.exit at %s" % place(ended.site) if ended is not None and ended.site is not None else ""
    return " (exit code %d%s)" % (code, by) if code is not None else ""


def _how(left: _Left) -> str:
    return " and left the group at %s" % place(left.leave.site) if left.leave is not None else " without leaving the group"


def _evidence(left: _Left) -> List[Evidence]:
    items = [shown(left.leave, "rank %s leaves the group" % left.process.rank)] if left.leave is not None else []
    return [*items, line(left.process.last_at, "rank %s ends without a failure" % left.process.rank)]


def _remedy(left: _Left) -> str:
    """Fewer batches and an early end look alike: batches are not in the events."""
    rank = left.process.rank
    batches = (
        "Print len(loader) on each rank: if rank %s has fewer batches than the others, give all the same number (DistributedSampler, drop_last=True, or Join([model]) around the loop)."
        % rank
    )
    where = " on the way to %s" % place(left.leave.site) if left.leave is not None else ""
    return (
        "%s If the numbers are equal, rank %s stopped by a decision of its own%s: take it on one rank, torch.distributed.broadcast it, and stop all ranks in the same step."
        % (batches, rank, where)
    )
