"""A signal from outside ended the job, and nothing had failed before."""

import re
from typing import Dict, Iterator, List

from ddp_probe.judging.ledgers import standings_of
from ddp_probe.judging.parted import left_by_then
from ddp_probe.judging.rule import Finding, Printed, Rule, line
from ddp_probe.judging.waiting import last_seen
from ddp_probe.reading.model import LoggedProcess, OutsideEnd, Run
from ddp_probe.wording.words import capital, clock, listed, named

_PLACES = 3
_JOBS = {
    "SLURM_JOB_ID": "sacct -j %s -o JobID,State,ExitCode,Elapsed,Timelimit",
    "PBS_JOBID": "qstat -xf %s",
    "LSB_JOBID": "bjobs -l %s",
    "JOB_ID": "qacct -j %s",
}
_SENDERS = {
    "SIGINT": "A person pressed Ctrl-C, or a program sent SIGINT.",
    "SIGHUP": "The terminal or the ssh connection was closed: start the job in tmux, or with nohup or setsid.",
    "SIGQUIT": "A person pressed Ctrl-\\, or a program sent SIGQUIT.",
    "SIGTERM": "A scheduler's time limit, a preemption, the stop of a container, or a person sent it: look there.",
}

_FAILED = r"\b\w+Error\b|exitcode|NCCL WARN|[Ww]atchdog caught|[Tt]imed? ?out\b|out of memory|\b[Kk]illed\b|Segmentation fault"

RULE = Rule(
    id="DDP655",
    slug="ended-from-outside",
    cause="ended_from_outside",
    title="A signal from outside ended the job.",
    symptom="'got signal: 15' of the launcher, a KeyboardInterrupt on each rank, or Lightning's 'Received SIGTERM', and no exception before it.",
    evidence="The launcher's file says that it was asked to stop, a rank was interrupted, or a call was made in the job's signal handler; nothing "
    "had failed before. What ranks do after the signal is not treated as the cause.",
    remedy="Find out who sent it: a person's Ctrl-C, a scheduler's time limit, a preemption, the stop of a container, a closed ssh session. If "
    "the job hung, look at the ranks that were elsewhere.",
    needs=("launcher.signal",),
    printed=(
        Printed(
            r"SignalException: Process \d+ got signal: 1\b|closing signal SIGHUP\b",
            says="The launcher got SIGHUP: its terminal or ssh connection was closed.",
            ranks=False,
        ),
        Printed(
            r"Received 15 death signal, shutting down workers|SignalException: Process \d+ got signal: 15\b",
            nowhere=_FAILED,
            says="The launcher got SIGTERM, and nothing had failed before: a scheduler, a container's stop, another host or a person sent it.",
            ranks=False,
        ),
        Printed(
            r"SignalException: Process \d+ got signal: 2\b",
            nowhere=_FAILED,
            says="The launcher got SIGINT, as from Ctrl-C, and nothing had failed before.",
            ranks=False,
        ),
        Printed(
            r"CANCELLED AT \S+ DUE TO (?P<why>TIME LIMIT|PREEMPTION|JOB REQUEUE)|\bPREEMPTED\b[^\n]*slurm",
            says="SLURM ended the job: {why}.",
            ranks=False,
        ),
        Printed(
            r"\bPreempted by (?:(?:a )?pod\b|[\w.-]+/[\w.-]+)[^\n]{0,80}on node \S+",
            says="Kubernetes evicted the pod from its node in favour of one with a higher priority.",
            ranks=False,
        ),
        Printed(
            r"slurmstepd: error: \*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+ \*\*\*",
            nowhere=_FAILED,
            says="SLURM cancelled the job without giving a reason: a person (scancel), or another task that failed (--kill-on-bad-exit).",
            next="sacct -j JOB -o JobID,State,ExitCode,Elapsed,Timelimit shows the task that failed first, and the log of that task why.",
        ),
    ),
    last_resort=True,
)


def check(run: Run) -> Iterator[Finding]:
    """Tell which signal came, when, and where each rank was."""
    found = run.outside
    if found is None:
        return
    stood = [process for process in run.processes if process.stood_until is not None]
    yield RULE.found(
        ranks=sorted(process.rank for process in stood if process.rank is not None),
        verdict="%s got %s at %s.%s%s%s"
        % (capital(found.to), found.signal or "a signal", clock(found.when), _places(run, stood), left_by_then(run), _handlers(run)),
        evidence=[line(one.at, "%s got %s%s" % (one.to, one.signal or "a signal", _did(one))) for one in _told(run, found)],
        when=found.when,
        remedy=_remedy(run, found),
        explains=[failure for process in stood for failure in process.failures],
    )


def _told(run: Run, found: OutsideEnd) -> List[OutsideEnd]:
    """Return the first sign, and the ranks whose handlers made a call."""
    return [found, *(one for one in run.handled if one.at != found.at)]


def _did(one: OutsideEnd) -> str:
    return "; its handler then called %s%s" % (one.did.op, ", which has not returned" if one.did.is_open else "") if one.did is not None else ""


def _handlers(run: Run) -> str:
    """Say that a handler's own call keeps a rank from ending."""
    waits = [(one.to, one.did.op) for one in run.handled if one.did is not None and one.did.is_open]
    return " %s then waited in %s, which its signal handler had called." % (capital(waits[0][0]), waits[0][1]) if waits else ""


def _places(run: Run, stood: List[LoggedProcess]) -> str:
    """Say where the ranks were until then."""
    seen = standings_of(run).ranks
    places: Dict[str, List[int]] = {}
    for process in stood:
        if process.rank is not None:
            where = last_seen(process).partition(" and was ended")[0]
            if process.rank in seen:
                standing = seen[process.rank]
                where = standing.where() if standing.left is not None else "was %s" % standing.where()
            places.setdefault(where, []).append(process.rank)
    told = ["%s %s" % (named(ranks), _of_several(where) if len(ranks) > 1 else where) for where, ranks in places.items()]
    return " Until then %s." % listed(told, _PLACES) if told else ""


def _of_several(where: str) -> str:
    return re.sub("^was ", "were ", where).replace("; its last call", "; their last call")


def _remedy(run: Run, found: OutsideEnd) -> str:
    environment = next((process.started.environment for process in run.processes), {})
    asked = next((" Ask it: %s." % (command % environment[name]) for name, command in _JOBS.items() if environment.get(name)), "")
    return "%s%s" % (_SENDERS.get(found.signal, "Find out who ended the launcher."), asked)
