"""A signal from outside ended the job, and nothing had failed before."""

from typing import Dict, Iterator, List

from ddp_probe.judging.ledgers import standings_of
from ddp_probe.judging.parted import left_by_then
from ddp_probe.judging.rule import Finding, Printed, Rule, line
from ddp_probe.judging.waiting import last_done
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.model import Failed, LoggedProcess, OutsideEnd, Run
from ddp_probe.wording.text import Text, about, joined, say
from ddp_probe.wording.words import clock, listed, named, quoted

_PLACES = 3
_JOBS = {
    "SLURM_JOB_ID": "sacct -j %s -o JobID,State,ExitCode,Elapsed,Timelimit",
    "PBS_JOBID": "qstat -xf %s",
    "LSB_JOBID": "bjobs -l %s",
    "JOB_ID": "qacct -j %s",
}
_SENDERS = {
    "SIGINT": say("A person pressed Ctrl-C, or a program sent SIGINT."),
    "SIGHUP": say("The terminal or the ssh connection was closed: start the job in tmux, or with nohup or setsid."),
    "SIGQUIT": say("A person pressed Ctrl-\\, or a program sent SIGQUIT."),
    "SIGTERM": say("A scheduler's time limit, a preemption, the stop of a container, or a person sent it: look there."),
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
    restart="unknown",  # A preemption, or a person who saw that something was wrong.
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
            r"CANCELLED AT \S+ DUE TO (?P<why>TIME LIMIT)",
            says="SLURM ended the job: {why}.",
            ranks=False,
        ),
        Printed(
            r"CANCELLED AT \S+ DUE TO (?P<why>PREEMPTION|JOB REQUEUE)|\bPREEMPTED\b[^\n]*slurm",
            says="SLURM ended the job: {why}.",
            ranks=False,
            restart="yes",  # Another job had the right of way. A time limit may have ended a hang.
        ),
        Printed(
            r"\bPreempted by (?:(?:a )?pod\b|[\w.-]+/[\w.-]+)[^\n]{0,80}on node \S+",
            says="Kubernetes evicted the pod from its node in favour of one with a higher priority.",
            ranks=False,
            restart="yes",  # As with SLURM.
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
    outside = run.outside
    if outside is None:
        return
    stood = [process for process in run.processes if process.stood_until is not None]
    failures: List[Failed] = []
    for process in stood:
        failures += process.failures
    yield RULE.found(
        ranks=sorted(ranks_of(stood)),
        verdict=say(
            "{got:capital} at {when}.{places}{left}{handlers}",
            got=_got(outside),
            when=clock(outside.when),
            places=_places(run, stood),
            left=left_by_then(run),
            handlers=_handlers(run),
        ),
        evidence=[line(end.at, _with_handler(end)) for end in _signs(run, outside)],
        when=outside.when,
        remedy=_remedy(run, outside),
        explains=failures,
    )


def _signs(run: Run, outside: OutsideEnd) -> List[OutsideEnd]:
    """Return the first sign, and the ranks whose handlers made a call."""
    return [outside, *(end for end in run.handled if end.at != outside.at)]


def _got(end: OutsideEnd) -> Text:
    return say("{process} got {signal}", process=end.to, signal=end.signal or say("a signal"))


def _with_handler(end: OutsideEnd) -> Text:
    if end.did is None:
        return _got(end)
    if end.did.is_open:
        return say(
            "{got}; its handler then called {call}, which has not returned",
            got=_got(end),
            call=end.did.op,
        )
    return say("{got}; its handler then called {call}", got=_got(end), call=end.did.op)


def _handlers(run: Run) -> str:
    """Say that a handler's own call keeps a rank from ending."""
    for end in run.handled:
        if end.did is not None and end.did.is_open:
            return say(
                " {process:capital} then waited in {call}, which its signal handler had called.",
                process=end.to,
                call=end.did.op,
            )
    return ""


def _places(run: Run, stood: List[LoggedProcess]) -> str:
    """Say where the ranks were until then."""
    places: Dict[str, List[int]] = {}
    for process in stood:
        if process.rank is not None:
            places.setdefault(_place(run, process), []).append(process.rank)
    parts = []
    for does, ranks in places.items():
        who = named(ranks)
        parts.append(say("{who} {does}", who=who, does=about(does, ranks=who)))
    return say(" Until then {places}.", places=listed(parts, _PLACES)) if parts else ""


def _place(run: Run, process: LoggedProcess) -> str:
    """Say where a rank was, or what it did last."""
    seen = standings_of(run).ranks
    if process.rank not in seen:
        return last_done(process)
    standing = seen[process.rank]
    if standing.left is not None:
        return standing.where()
    return say("{ranks:was|were} {where}", ranks=named([standing.rank]), where=standing.where())


def _remedy(run: Run, outside: OutsideEnd) -> Text:
    environment = next((process.started.environment for process in run.processes), {})
    sender = _SENDERS.get(outside.signal) or say("Find out who ended the launcher.")
    for name, command in _JOBS.items():
        if environment.get(name):
            return joined([sender, say("Ask it: {command}.", command=quoted(command % environment[name]))])
    return sender
