"""A rank was killed, and the others lost the connection to it."""

from typing import Iterator, List, Tuple, Union

from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, Undecided, failed, line
from ddp_probe.judging.waiting import last_done, waited
from ddp_probe.judging.who import deaths, ranks, ranks_of
from ddp_probe.reading.model import Death, Failed, LoggedProcess, Run
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import clock, listed, named

_CRASH = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE")  # These come from a crash, not from another process.
_KILL = "SIGKILL"
_ENTRY = r"rank\s*:\s*(?P<rank>\d+) \(local_rank: \d+\)\s+exitcode\s*:\s*-"

_WHO = say("Find out who sent it: dmesg -T | grep -i 'out of memory', memory.events of the container, the scheduler's log of the job.")

_TRACE = "Run it once with PYTHONFAULTHANDLER=1: it prints the line of the crash; a bus error in NCCL or in a DataLoader is a lack of /dev/shm."
_RAY = (
    "On that worker's host: its log in /tmp/ray/session_latest/logs (worker-*.err, python-core-worker-*.log) for an exception, and "
    "dmesg -T | grep -i 'out of memory'."
)

RULE = Rule(
    id="DDP615",
    slug="killed-by-signal",
    cause="rank_stopped_participating",
    title="A rank was killed by a signal, and the others lost the connection to it.",
    symptom=(
        "'Connection reset by peer' or a timeout on the other ranks; the launcher reports exit code -9 (SIGKILL), -11 (SIGSEGV) or -7 (SIGBUS) for "
        "one."
    ),
    evidence="The launcher's report on its processes, and a rank's file without a last line.",
    remedy="SIGKILL: look for the kernel's out-of-memory killer (dmesg -T | grep -i oom; memory.max of the container) and use less memory there. "
    "SIGSEGV: run it with PYTHONFAULTHANDLER=1. SIGBUS: enlarge /dev/shm.",
    restart="unknown",  # A crash of the code, lack of memory, or a kill from outside.
    needs=("launcher.child",),
    printed=(
        Printed(
            r"Root Cause \(first observed failure\):\s*\[\d+\]:\s+(?:[^\n]*\n\s*){1,3}?" + _ENTRY + r"(?P<code>9)\b",
            says="The launcher reports that rank {rank} ended first, by signal {code}.",
        ),
        Printed(
            r"Root Cause \(first observed failure\):\s*\[\d+\]:\s+(?:[^\n]*\n\s*){1,3}?" + _ENTRY + r"(?P<code>11|7)\b",
            says="The launcher reports that rank {rank} crashed first, by signal {code}, and not why.",
            next=_TRACE,
        ),
        Printed(_ENTRY + r"(?P<code>11|7)\b", says="The launcher reports that rank {rank} crashed, by signal {code}, and not why.", next=_TRACE),
        # A launcher kills the ranks that do not stop in time; if a peer lost its connection, a rank was gone before that.
        Printed(
            _ENTRY + r"(?P<code>9)\b",
            beside=r"Connection (?:closed|reset) by peer|[Rr]emote process exited",
            says="The launcher reports that rank {rank} ended by signal {code}.",
        ),
        Printed(r"process (?P<rank>\d+) terminated with signal SIGKILL", says="Process {rank} was ended by SIGKILL."),
        Printed(
            r"process (?P<rank>\d+) terminated with signal (?P<signal>SIG(?:SEGV|BUS))", says="Process {rank} crashed, by {signal}.", next=_TRACE
        ),
        Printed(r"died with <Signals\.SIGKILL: \d+>", says="A rank was ended by SIGKILL.", ranks=False),
        Printed(r"died with <Signals\.(?P<signal>SIG(?:SEGV|BUS)): \d+>", says="A rank crashed, by {signal}.", next=_TRACE),
        Printed(
            r"failed \(exitcode: -9\) local_rank: (?P<local>\d+)",
            says="The process with local rank {local} was ended by signal 9.",
            ranks=False,
        ),
        Printed(
            r"failed \(exitcode: -(?P<code>11|7)\) local_rank: (?P<local>\d+)",
            says="The process with local rank {local} crashed, by signal {code}.",
            next=_TRACE,
        ),
        Printed(r"srun: error: [^\n]*task (?P<rank>\d+): (?P<how>Segmentation fault|Bus error)", says="Task {rank} crashed: {how}.", next=_TRACE),
        Printed(
            r"srun: error: [^\n]*tasks? (?P<tasks>[\d,-]+): Killed",
            nowhere=r"CANCELLED|DUE TO|Exited with exit code|oom|OOM|[Oo]ut of memory",
            says="SLURM saw task {tasks} end by SIGKILL, and not why.",
            next="sacct -j JOB -o JobID,State,ExitCode,MaxRSS tells OUT_OF_MEMORY from CANCELLED; dmesg -T | grep -i 'out of memory' on the host.",
            ranks=False,
        ),
        Printed(r"exits with return code = -9\b", says="A process of the job was ended by signal 9.", ranks=False),
        Printed(r"exits with return code = -(?P<code>11|7)\b", says="A process of the job crashed, by signal {code}.", next=_TRACE),
        Printed(
            r"WorkerCrashedError: The worker died unexpectedly|NodeDiedError:|LocalRayletDiedError:"
            r"|A worker died or was killed while executing a task by an unexpected system error|[Ww]orker exit type: SYSTEM_ERROR",
            says="Ray has lost a process that was a rank, or its node, and does not know why.",
            next=_RAY,
        ),
        Printed(
            r"slurmstepd: error: \*\*\* (?:JOB|STEP) [\d.]+ ON [\w.-]+ CANCELLED AT \S+ DUE TO NODE FAILURE|srun: error: Node failure on \S+",
            says="SLURM lost a node of the job.",
            ranks=False,
            restart="yes",  # SLURM takes another node in its place.
        ),
        Printed(
            r"(?:RayActorError|ActorDiedError): The actor died (?:unexpectedly|because)[^\n]*",
            says="A Ray actor that was a rank died, and Ray does not know why.",
            next=_RAY,
        ),
        Printed(
            r"DataLoader worker \(pid\(?s?\)? [\d, ]+\) is killed by signal: (?P<how>Segmentation fault)"
            r"|Unexpected (?P<fault>segmentation fault) encountered in worker",
            says="A DataLoader worker crashed by a segmentation fault.",
        ),
        Printed(
            r"(?m:^)[^\n]{0,200}(?:Segmentation fault|Bus error) {1,3}\(core dumped\)|Fatal Python error: (?:Segmentation fault|Bus error)",
            says="A process of the job crashed in a native library, and its line is not told.",
            next=_TRACE,
            ranks=False,
        ),
    ),
    yields_to=("host-out-of-memory", "shared-memory-too-small", "torch-fault", "card-broken"),
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
        because = say(
            "{who:capital} were all ended by {signals}, so it is not known which of them ended first.",
            who=named(guilty),
            signals=listed(names),
        )
        yield RULE.undecided(because, then=_WHO)
        return
    process = killed[0][0]
    lost = [failure for failure in run.failures if failure.consequence or waited(failure)]
    ended = say(
        "{who:capital} {who:was|were} ended by {signals}; rank {rank} {does}.",
        who=named(guilty),
        signals=listed(names),
        rank=process.rank,
        does=last_done(process),
    )
    yield RULE.found(
        ranks=guilty,
        verdict=joined([ended, _loss(lost)]),
        evidence=[*_evidence(killed), *(failed(failure) for failure in lost[:2])],
        when=min(process.last_when for process, _ in killed),
        explains=lost,
        remedy=_remedy(names[0], guilty),
    )


def _deaths(run: Run) -> List[Tuple[LoggedProcess, Death]]:
    """Return the ranks that wrote no last line, with their launcher's report."""
    ends = deaths(run)
    unended = [process for process in run.processes if process.end is None]
    return [(process, ends[process.rank]) for process in unended if process.rank is not None and process.rank in ends]


def _own_failure(run: Run) -> bool:
    """Tell whether another rank failed first: a launcher kills the ranks that do not stop in time."""
    return any(failure.fatal and not failure.consequence for failure in run.failures)


def _loss(lost: List[Failed]) -> str:
    if not lost:
        return ""
    losers = named(ranks_of(lost))
    return say("{who:capital} lost the connection at {when}.", who=losers, when=clock(lost[0].when))


def _evidence(killed: List[Tuple[LoggedProcess, Death]]) -> List[Evidence]:
    exits = []
    for _, death in killed[:2]:
        exits.append(line(death.at, say("exit code {code} ({signal})", code=death.exit_code, signal=death.signal)))
    return exits + [line(process.last_at, say("the last line of rank {rank}", rank=process.rank)) for process, _ in killed[:2]]


def _remedy(signal: str, guilty: List[int]) -> Text:
    if signal == _KILL:
        return say(
            "Find out who killed {who}: the kernel because memory ran out (dmesg -T | grep -i 'out of memory'; memory.events of the container), "
            "a scheduler, or a person. If it was memory, use less of it there.",
            who=named(guilty),
        )
    if signal == "SIGBUS":
        return say(
            "Enlarge /dev/shm (docker run --shm-size=16g), or use fewer DataLoader workers. A file that is truncated while it is mapped causes "
            "SIGBUS too."
        )
    return say(
        "Run with PYTHONFAULTHANDLER=1: {who} then prints the line of the crash, which is in a native library.",
        who=named(guilty),
    )
