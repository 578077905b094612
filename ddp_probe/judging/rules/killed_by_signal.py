"""A rank was killed, and the others lost it."""

from typing import Iterator, List, Tuple, Union

from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, Undecided, failed, line
from ddp_probe.judging.waiting import last_seen, waited
from ddp_probe.judging.who import deaths, ranks
from ddp_probe.judging.words import capital, clock, named, subject
from ddp_probe.reading.model import Death, Failed, LoggedProcess, Run

_CRASH = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE")  # These come from a crash, not from another process.
_KILL = "SIGKILL"
_ENTRY = r"rank\s*:\s*(?P<rank>\d+) \(local_rank: \d+\)\s+exitcode\s*:\s*-"

_WHO = "Find out who sent it: dmesg -T | grep -i 'out of memory', memory.events of the container, the scheduler's log of the job."

RULE = Rule(
    id="DDP615",
    slug="killed-by-signal",
    cause="rank_stopped_participating",
    title="A rank was killed by a signal, and the others lost it.",
    symptom=(
        "'Connection reset by peer' or a timeout on the other ranks; the launcher reports exit code -9 (SIGKILL), -11 (SIGSEGV) or -7 (SIGBUS) for "
        "one."
    ),
    evidence="The launcher's report on its processes, and a rank's file without a last line.",
    remedy="SIGKILL: look for the kernel's out-of-memory killer (dmesg -T | grep -i oom; memory.max of the container) and use less memory there. "
    "SIGSEGV: run it with PYTHONFAULTHANDLER=1. SIGBUS: enlarge /dev/shm.",
    needs=("launcher.child",),
    printed=(
        Printed(
            r"Root Cause \(first observed failure\):\s*\[\d+\]:\s+(?:[^\n]*\n\s*){1,3}?" + _ENTRY + r"(?P<code>9|11|7)\b",
            says="The launcher reports that rank {rank} ended first, by signal {code}.",
        ),
        Printed(_ENTRY + r"(?P<code>11|7)\b", says="The launcher reports that rank {rank} ended by signal {code}."),
        # A launcher kills the ranks that do not stop in time; if a peer lost its connection, a rank was gone before that.
        Printed(
            _ENTRY + r"(?P<code>9)\b",
            beside=r"Connection (?:closed|reset) by peer|[Rr]emote process exited",
            says="The launcher reports that rank {rank} ended by signal {code}.",
        ),
        Printed(r"process (?P<rank>\d+) terminated with signal (?P<signal>SIG(?:KILL|SEGV|BUS))", says="Process {rank} was ended by {signal}."),
        Printed(r"died with <Signals\.(?P<signal>SIG(?:KILL|SEGV|BUS)): \d+>", says="A rank was ended by {signal}.", ranks=False),
        Printed(
            r"failed \(exitcode: -(?P<code>9|11|7)\) local_rank: (?P<local>\d+)",
            says="The process with local rank {local} was ended by signal {code}.",
            ranks=False,
        ),
        Printed(r"srun: error: [^\n]*task (?P<rank>\d+): (?P<how>Segmentation fault|Bus error)", says="Task {rank} was ended: {how}."),
        Printed(r"exits with return code = -(?P<code>9|11|7)\b", says="A process of the job was ended by signal {code}.", ranks=False),
        Printed(
            r"(?:RayActorError|ActorDiedError): The actor died (?:unexpectedly|because)[^\n]*",
            says="A Ray actor that was a rank died.",
            ranks=False,
        ),
        Printed(
            r"DataLoader worker \(pid\(?s?\)? [\d, ]+\) is killed by signal: (?P<how>Segmentation fault)",
            says="A DataLoader worker was killed: {how}.",
        ),
    ),
    yields_to=("host-out-of-memory", "torch-fault"),
)


def check(run: Run) -> Iterator[Union[Finding, Undecided]]:
    """Find the ranks that a signal ended, if the launcher did not send it."""
    if run.outside is not None:
        return
    signals = _CRASH if _own_failure(run) else (*_CRASH, _KILL)
    killed = [(process, death) for process, death in _deaths(run) if death.signal in signals]
    if not killed:
        return
    guilty = ranks(process for process, _ in killed)
    names = sorted({death.signal for _, death in killed})
    if len(guilty) * 2 > max(len(run.ranks), run.expected or 0) and len(guilty) > 1:
        yield RULE.undecided(
            "%s were all ended by %s, so it is not known which of them ended first." % (capital(named(guilty)), ", ".join(names)), then=_WHO
        )
        return
    process = killed[0][0]
    lost = [failure for failure in run.failures if failure.consequence or waited(failure)]
    seen = last_seen(process).partition(" and was ended")[0]
    yield RULE.found(
        ranks=guilty,
        verdict="%s ended by %s; rank %s %s.%s" % (subject(guilty, "was", "were"), ", ".join(names), process.rank, seen, _loss(lost)),
        evidence=[*_evidence(killed), *(failed(failure) for failure in lost[:2])],
        when=min(process.last_when for process, _ in killed),
        explains=lost,
        remedy=_remedy(names[0], guilty),
    )


def _deaths(run: Run) -> List[Tuple[LoggedProcess, Death]]:
    """Return the ranks that wrote no last line, with their launcher's report."""
    told = deaths(run)
    return [(process, told[process.rank]) for process in run.processes if process.end is None and process.rank is not None and process.rank in told]


def _own_failure(run: Run) -> bool:
    """Tell whether another rank failed first: a launcher kills the ranks that do not stop in time."""
    return any(failure.fatal and not failure.consequence for failure in run.failures)


def _loss(lost: List[Failed]) -> str:
    return " %s lost it at %s." % (capital(_losers(lost)), clock(lost[0].when)) if lost else ""


def _losers(lost: List[Failed]) -> str:
    return named(sorted({failure.rank for failure in lost if failure.rank is not None}))


def _evidence(killed: List[Tuple[LoggedProcess, Death]]) -> List[Evidence]:
    told = [line(death.at, "exit code %s (%s)" % (death.exit_code, death.signal)) for _, death in killed[:2]]
    return told + [line(process.last_at, "the last line of rank %s" % process.rank) for process, _ in killed[:2]]


def _remedy(signal: str, guilty: List[int]) -> str:
    who = named(guilty)
    if signal == _KILL:
        return (
            "Find out who killed %s: the kernel because memory ran out (dmesg -T | grep -i 'out of memory'; memory.events of the container), "
            "a scheduler, or a person. If it was memory, use less of it there." % who
        )
    if signal == "SIGBUS":
        return (
            "Enlarge /dev/shm (docker run --shm-size=16g), or use fewer DataLoader workers. "
            "A file that is cut off while it is mapped causes SIGBUS too."
        )
    return "Run with PYTHONFAULTHANDLER=1: %s then prints the line of the crash, which is in a native library." % who
