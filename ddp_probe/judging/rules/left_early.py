"""A rank ended normally while the others still needed it."""

from typing import Dict, Iterator, List, Optional, Tuple, Union

from ddp_probe.judging import left_sequence
from ddp_probe.judging.disagreements import Abandoned, abandoned
from ddp_probe.judging.exit_calls import by_exit_call, fix_of_hidden
from ddp_probe.judging.ledgers import as_site, standings_of
from ddp_probe.judging.loop_end import UNEQUAL, exchanged_unequally, unequal
from ddp_probe.judging.parted import deciding_evidence, departed, in_order, sequence_evidence, split
from ddp_probe.judging.rule import MEDIUM, Evidence, Finding, Rule, Undecided, failed, shown
from ddp_probe.judging.waiting import joined as in_group
from ddp_probe.judging.waiting import stood, waited
from ddp_probe.judging.who import ranks, ranks_of
from ddp_probe.reading.failures import PEER_GONE
from ddp_probe.reading.job_line import own_frames
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.shared import schema
from ddp_probe.standing.deciding import Deciding
from ddp_probe.standing.last_ways import of_leaver
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import at, lasting, named, place

_STEPS = say("Print the number of batches of each rank, len(loader), before the loop: the ranks that ended have fewer.")
_MEANT = say("If it is meant to stop there, torch.distributed.broadcast the decision, and stop all ranks in the same step.")

RULE = Rule(
    id="DDP617",
    slug="left-early",
    cause="rank_stopped_participating",
    title="A rank ended normally while the others still needed it.",
    symptom="'Connection closed by peer', 'Connection reset by peer' or a timeout on the others, and no traceback on the rank that left.",
    evidence=(
        "The rank's file ends without a failure before the others lose it. The events do not show whether it had fewer batches or decided to stop."
    ),
    remedy=(
        "Let all ranks leave together: give them the same number of batches (DistributedSampler, drop_last=True). If one rank decides to stop, "
        "broadcast the decision (torch.distributed.broadcast of a flag), and stop all ranks in the same step."
    ),
    restart="no",  # The rank has the same reason to leave again.
    needs=("process.end",),
    needs_all=True,
)


class _Leaver:
    """A rank that ended normally, and when it left the group."""

    def __init__(self, process: LoggedProcess) -> None:
        self.process = process
        self.leave: Optional[LoggedCall[schema.DestroyProcessGroup]] = process.final(schema.DestroyProcessGroup)
        self.exit_call = process.exit_call
        self.when = self.leave.when if self.leave is not None else process.over[0]


def check(run: Run) -> Iterator[Union[Finding, Undecided]]:
    """Find the ranks that ended well before others lost a peer, if no rank failed for its own reason."""
    lost, own = _failures(run)
    if not any(failure.fatal for failure in run.failures):
        yield from _nobody_failed(run)
    if not lost or own or any(death.signal not in ("", "SIGTERM") for death in run.deaths):
        return
    first = lost[0]
    gone = [left for left in (_Leaver(process) for process in run.processes if _ended_well(process)) if left.when <= first.when]
    if not gone:
        return
    guilty = ranks(left.process for left in gone)
    unequal_exchange = _unequal_exchange(run, gone, lost)
    if unequal_exchange is not None:
        yield unequal_exchange
        return
    parting = split(run)
    left = parting.left if parting is not None else None
    if left is None and len({*guilty, *_without_last_line(run)}) * 2 > len(run.ranks):
        because = say(
            "{who:capital} had ended normally when rank {rank} still needed them, {stood}; "
            "the logs do not show which of them had the wrong number of steps.",
            who=named(guilty),
            rank=first.rank,
            stood=stood(first),
        )
        yield RULE.undecided(because, then=_STEPS)
        return
    earliest = min(gone, key=lambda left: left.when)
    verdict: str = say(
        "{who:capital} ended without an exception{code}{how}; rank {rank} was still {stood} and lost the connection {later} later.",
        who=named(guilty),
        code=_code(run, earliest),
        how=_how(earliest),
        rank=first.rank,
        stood=stood(first),
        later=lasting(first.when - earliest.when),
    )
    if parting is not None and left is not None:
        verdict = in_order(parting, verdict, departed(parting))
    decision = _decision(run, earliest, first) if left is None else None
    verdict = joined([verdict, left_sequence.decided_by(decision)])
    ends = [*_deciding(run, earliest, decision), *_evidence(earliest, lost)]
    yield RULE.found(
        ranks=left.ranks if left is not None else guilty,
        verdict=verdict,
        evidence=sequence_evidence(run, left, ends),
        when=earliest.when,
        explains=lost,
        remedy=_stay(guilty) if _connects(first) and not _exit_code(run, earliest) else _remedy(run, earliest),
        change=left_sequence.change(parting.decided if parting is not None else None),
    )


def _decision(run: Run, gone: _Leaver, lost: Failed) -> Optional[Deciding]:
    """Return what let a rank end where another one came to the line at which it failed."""
    standings = standings_of(run).ranks
    mine = standings.get(gone.process.rank) if gone.process.rank is not None else None
    other = standings.get(lost.rank) if lost.rank is not None else None
    if mine is None or other is None or gone.exit_call is not None:
        return None
    sites = [LedgerSite(frame.file, frame.line, frame.function) for frame in own_frames(lost.frames)]
    return of_leaver(mine, other, tuple(sites))


def _deciding(run: Run, gone: _Leaver, decision: Optional[Deciding]) -> List[Evidence]:
    return deciding_evidence(run, gone.process.rank, decision) if gone.process.rank is not None else []


def _without_last_line(run: Run) -> List[int]:
    """Return the ranks of which nothing shows how they ended: they may have left as well."""
    open_ends = [process.rank for process in run.processes if process.ended is None and not process.failures]
    deaths = {rank: run.death(rank) for rank in open_ends if rank is not None and rank not in run.running}
    return [rank for rank, death in deaths.items() if death is None or death.exit_code == 0]


def _nobody_failed(run: Run) -> Iterator[Finding]:
    """Find the ranks that left if no rank has failed: before a call that raised on others and that the job caught, or with an exit call."""
    ended_well = [process for process in run.processes if _ended_well(process)]
    left = {process.rank: _Leaver(process) for process in ended_well if process.rank is not None}
    call = abandoned(run)
    gone = [left[rank] for rank in call.left if rank in left and left[rank].when <= call.when] if call is not None else _exited(run, left)
    if not gone or len(gone) * 2 > len(run.ranks):
        return
    guilty, earliest = ranks(leaver.process for leaver in gone), min(gone, key=lambda leaver: leaver.when)
    if call is not None:
        verdict = say(
            "{who:capital} ended without an exception{code}{how}; rank {rank} was in {call}, which {who} never made, and lost the connection there.",
            who=named(guilty),
            code=_code(run, earliest),
            how=_how(earliest),
            rank=call.rank,
            call=call.what,
        )
    else:
        verdict = say(
            "{who:capital} ended without an exception{code}{how}; then its launcher ended the others with SIGTERM.",
            who=named(guilty),
            code=_code(run, earliest),
            how=_how(earliest),
        )
    is_caught = not _exit_code(run, earliest)
    yield RULE.found(
        ranks=guilty,
        verdict=joined([verdict, say("The job caught what failed.")]) if is_caught else verdict,
        evidence=[*_evidence(earliest, []), *([_lost(run, call)] if call is not None else [])],
        when=earliest.when,
        remedy=fix_of_hidden(earliest.process) or (_caught(guilty, earliest) if is_caught else _remedy(run, earliest)),
        confidence=MEDIUM,
    )


def _exited(run: Run, left: Dict[int, _Leaver]) -> List[_Leaver]:
    """Return the ranks that came to an exit call with another code than 0, if the launcher has ended all others after that."""
    gone = [leaver for leaver in left.values() if leaver.exit_call is not None and _exit_code(run, leaver)]
    rest = [process for process in run.processes if process not in [leaver.process for leaver in gone]]
    ended = [run.death(process.rank) if process.rank is not None else None for process in rest]
    return gone if ended and all(death is not None and death.signal == "SIGTERM" for death in ended) else []


def _lost(run: Run, call: Abandoned) -> Evidence:
    kept = standings_of(run).ranks[call.rank].ledger
    text = say("rank {rank}: {call} raised", rank=call.rank, call=call.what)
    return Evidence(kept.path, getattr(call.call, "number", 1), as_site(call.call.site), text)


def _unequal_exchange(run: Run, gone: List[_Leaver], lost: List[Failed]) -> Optional[Finding]:
    """Return that ranks wait for gradients in a backward pass that those who left have made too: nobody had fewer batches."""
    standings = standings_of(run).ranks
    left, stuck = ranks(leaver.process for leaver in gone), sorted(set(ranks_of(lost)))
    if not all(rank in standings for rank in (*left, *stuck)):
        return None
    passes = exchanged_unequally([standings[rank] for rank in stuck], [standings[rank] for rank in left])
    if not passes:
        return None
    guilty, why = unequal(stuck, left)
    return RULE.found(
        ranks=guilty,
        verdict=say(
            "{who:capital} waited for gradients in backward number {number}{where}, and {others}, which had made as many, had left: {why}.",
            who=named(stuck),
            number=passes,
            where=at(standings[stuck[0]].entry),
            others=named(left),
            why=why,
        ),
        evidence=[
            *(failed(failure) for failure in lost[:3]),
            *(shown(leaver.leave, say("leaves the group")) for leaver in gone[:1] if leaver.leave is not None),
        ],
        when=lost[0].when,
        remedy=UNEQUAL,
        explains=lost,
        confidence=MEDIUM,
    )


def _failures(run: Run) -> Tuple[List[Failed], bool]:
    """Return the failures of ranks that lost a peer, and whether any rank failed otherwise."""
    fatal = [failure for failure in run.failures if failure.fatal]
    lost = [
        failure
        for failure in fatal
        if failure.process is not None
        and (failure.consequence == PEER_GONE or (waited(failure) and in_group(failure.process)))
        and (in_group(failure.process) or _connects(failure))
    ]
    return lost, any(not failure.consequence and not waited(failure) for failure in fatal)


def _connects(failure: Failed) -> bool:
    return any(isinstance(call.begin, schema.InitProcessGroup) for call in failure.calls)


def _ended_well(process: LoggedProcess) -> bool:
    return (
        process.rank is not None and process.ended is not None and process.ended.failure is None and not process.ended.uncaught and in_group(process)
    )


def _exit_code(run: Run, left: _Leaver) -> Optional[int]:
    death = run.death(left.process.rank) if left.process.rank is not None else None
    return death.exit_code if death is not None and death.exit_code is not None else getattr(left.process.ended, "exit_code", None)


def _code(run: Run, left: _Leaver) -> str:
    code = _exit_code(run, left)
    if code is None:
        return ""
    by = by_exit_call(left.process)
    return say(" (exit code {code}, {by})", code=code, by=by) if by else say(" (exit code {code})", code=code)


def _how(left: _Leaver) -> Text:
    if left.leave is None:
        return say(" without leaving the group")
    return say(" and left the group at {where}", where=place(left.leave.site))


def _evidence(left: _Leaver, lost: List[Failed]) -> List[Evidence]:
    at = left.process.over[1]
    who = named(ranks_of([left.process]))
    end = Evidence(at.file, at.line, left.exit_call, say("{who} {who:ends|end} without a failure", who=who))
    if left.exit_call is not None:
        return [
            end,
            *(failed(failure) for failure in lost[:1]),
        ]  # The report shows the source of the line that most of the evidence names, or of the first.
    items = [shown(left.leave, say("{who} {who:leaves|leave} the group", who=who))] if left.leave is not None else []
    return [*items, end, *_last_call(left.process), *(failed(failure) for failure in lost[:3]), *(_last_call(lost[0].process) if lost else [])]


def _last_call(process: Optional[LoggedProcess]) -> List[Evidence]:
    """Return the last collective of a rank, if it has a ledger."""
    kept = process.ledger if process is not None else None
    last = kept.last if kept is not None else None
    if process is None or kept is None or last is None or last.op == "destroy_process_group":
        return []
    text = say("rank {rank}: the last call of torch.distributed is {call}", rank=process.rank, call=last.op)
    return [Evidence(kept.path, last.number, as_site(last.site), text)]


def _stay(guilty: List[int]) -> Text:
    return say(
        "Let all ranks call torch.distributed.barrier() after init_process_group: then no rank ends while another is still connecting. "
        "If {who} ended before the work was done, look for an early return, or an except clause that it passed through.",
        who=named(guilty),
    )


def _caught(guilty: List[int], left: _Leaver) -> Text:
    return say(
        "Look at what {who} printed or logged{where}, and at the except clause that it passed through: let the rank end with its exception, "
        "or, if it is meant to stop there, torch.distributed.broadcast the decision, and stop all ranks in the same step.",
        who=named(guilty),
        where=say(" before {where}", where=place(left.leave.site)) if left.leave is not None else "",
    )


def _remedy(run: Run, left: _Leaver) -> str:
    """Return both remedies: fewer batches and an early stop look alike, as the events do not have batches. An exit call is neither."""
    rank = left.process.rank
    hidden = fix_of_hidden(left.process)
    if hidden:
        return hidden
    if left.exit_call is not None:
        why = say(
            "Find out why rank {rank} reaches the exit call at {where}: print what decides it.",
            rank=rank,
            where=place(left.exit_call),
        )
        return joined([why, _MEANT])
    if _exit_code(run, left):
        why = say("Find out why rank {rank} ends with an exit code other than 0: print what decides it.", rank=rank)
        return joined([why, _MEANT])
    batches = say(
        "Print len(loader) on each rank: if rank {rank} has fewer batches than the others, give all ranks the same number (DistributedSampler, "
        "drop_last=True, or Join([model]) around the loop).",
        rank=rank,
    )
    decision = say(
        "If the numbers are equal, rank {rank} decided to stop{where}: make the decision on one rank, torch.distributed.broadcast it, "
        "and stop all ranks in the same step.",
        rank=rank,
        where=say(" on the way to {where}", where=place(left.leave.site)) if left.leave is not None else "",
    )
    return joined([batches, decision])
