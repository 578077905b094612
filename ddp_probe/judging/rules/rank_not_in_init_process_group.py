"""Ranks have started and do not come to init_process_group, in which the others wait."""

import re
from itertools import chain
from typing import Any, Iterator, List, Optional, Tuple

from ddp_probe.judging.ledgers import is_served, standings_of
from ddp_probe.judging.rule import ERROR, WARNING, Finding, Rule, first_of, line, shown
from ddp_probe.judging.waiting import last_seen
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading import rank_stacks
from ddp_probe.reading.alive import state_of
from ddp_probe.reading.job_line import job_line
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.own_code import task
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import at, named

_TIMED_OUT = re.compile(r"[Tt]imed out|[Tt]imeout|clients joined")
_Wait = Tuple[LoggedProcess, "LoggedCall[schema.InitProcessGroup]"]

RULE = Rule(
    id="DDP639",
    slug="rank-not-in-init-process-group",
    cause="rank_divergent_control_flow",
    title="A rank has started but does not reach init_process_group, in which the others wait.",
    symptom="The job hangs at its start, or 'Timed out waiting for clients' although all processes run.",
    evidence="The log of the missing rank shows its start but no init_process_group; the others have entered it and do not return.",
    remedy="Look at what the missing rank does before init_process_group: a download, a lock, an input, a branch that skips the call.",
    restart="unknown",  # A download or a lock that was slow, or a branch that skips the call.
    needs=("dist.init_process_group", "process.start"),
)


def check(run: Run) -> Iterator[Finding]:
    """Compare who has begun init_process_group and who has not, if the others have waited for long."""
    late = [process for process in run.processes if process.rank is not None and _is_late(run, process)]
    waits = list(chain.from_iterable(_waits(run, process) for process in run.processes))
    if not late or not waits or run.missing or len(late) + len(waits) != len(run.ranks):
        return
    _, call = waits[0]
    ranks = ranks_of(late)
    works = [_works(run, process) for process in late]
    waiting = [shown(wait, say("{who} {who:waits|wait}", who=named(ranks_of([process])))) for process, wait in waits[:2]]
    last_lines = [line(process.last_at, say("rank {rank} wrote this last", rank=process.rank)) for process in late]
    yield RULE.found(
        ranks=ranks,
        verdict=say(
            "{who:capital} {who:waits|wait} in init_process_group{where}; rank {late}, which has started, has not reached it: it {does}.",
            who=named(_ranks(waits)),
            where=at(call.site),
            late=ranks[0],
            does=works[0] or last_seen(late[0]),
        ),
        evidence=first_of(waiting + last_lines),
        when=min(wait.when for _, wait in waits),
        remedy=say(
            "Look at what {who} {who:does|do} before init_process_group: a download, a lock, an input, or a branch that skips the call.",
            who=named(ranks),
        ),
        explains=list(chain.from_iterable(process.failures for process, _ in waits)),
        severity=WARNING if all(works) and not any(wait.failure for _, wait in waits) else ERROR,
    )


def _ranks(waits: List[_Wait]) -> List[int]:
    return [process.rank for process, _ in waits if process.rank is not None]


def _works(run: Run, process: LoggedProcess) -> Optional[Text]:
    """Say what a rank does that may take long and end: it imports, is in a debugger, or computes; None if none of this is seen."""
    if process.rank not in run.running:
        return None
    looks: List[LoggedCall[Any]] = [*process.calls(schema.HangSuspected), *process.calls(schema.Stacks)]
    latest = max(looks, key=lambda look: look.when, default=None)
    frames = rank_stacks.main_frames(latest.begin.threads) if latest is not None else []
    where = at(job_line(frames))
    doing = task([(frame.file, frame.function) for frame in frames])
    if doing == "import":
        return say("still imports{where}", where=where)
    if doing == "debugger":
        return say("is in a debugger{where}", where=where)
    if latest is not None and is_served(latest.begin):
        return say("waits for processes that it has started, and they compute{where}", where=where)
    return say("still computes") if state_of(process) == "R" else None


def _is_late(run: Run, process: LoggedProcess) -> bool:
    is_there = run.stands_until(process) is not None or (process.end is None and not process.failures)
    return process.start is not None and not process.count(schema.InitProcessGroup) and is_there


def _waits(run: Run, process: LoggedProcess) -> Iterator[_Wait]:
    call = process.final(schema.InitProcessGroup)
    if call is None or process.rank is None:
        return
    timed_out = call.failure is not None and _TIMED_OUT.search(call.failure.message)
    if timed_out or run.waited_in(process, call) >= standings_of(run).patience:
        yield process, call
