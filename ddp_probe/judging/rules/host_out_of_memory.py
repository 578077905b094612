"""The host is out of memory: an allocation fails, or the kernel kills a process."""

from typing import Any, Iterator, List, NamedTuple, Tuple

from ddp_probe.judging.printed import by_text
from ddp_probe.judging.rule import Finding, Printed, Rule, shown
from ddp_probe.judging.who import deaths
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import named

_SIZE = r"[\d.]+ ?(?:[KMGTP]i?B|bytes)"
# If another process failed, stopped waiting or was interrupted, then a launcher, a scheduler or a person may have sent the signal.
_OTHERWISE = (
    r"Connection (?:closed|reset) by (?:remote )?peer|[Rr]emote process exited|ncclRemoteError|[Ww]atchdog caught|Timed out waiting|[Tt]imeout\(ms\)"
    r"|CANCELLED|DUE TO TIME LIMIT|PREEMPT|KeyboardInterrupt|death signal|exitcode\s{0,20}: (?!-9\b|-15\b)-?[1-9]"
)
_ENTRY = r"rank\s{0,20}: (?P<rank>\d+) \(local_rank: \d+\)\s{1,40}exitcode\s{0,20}: -9\b"
_KILLED = "by SIGKILL, and nothing else failed; most often the kernel sends it when the host runs out of memory."

_SAID = (
    Printed(
        r"DefaultCPUAllocator: (?:can't allocate|not enough|cannot allocate) memory: you tried to allocate (?P<asked>\d+ bytes)",
        says="The host has no room for the {asked} that the job asks for.",
    ),
    Printed(r"Unable to allocate (?P<asked>%s) for an array" % _SIZE, says="The host has no room for the {asked} that the job asks for."),
    Printed(
        r"\[Errno 12\] Cannot allocate memory|cannot allocate memory for thread-local data|unable to mmap \d+ bytes from [^\n]*Cannot allocate memory"
    ),
    Printed(r"(?<![\w.])MemoryError\b|(?:what\(\): {1,4}|Error: )std::bad_alloc", unless=r"[Cc]uda|CUDA|rmm|GPU|static TLS"),
    Printed(
        r"DataLoader worker \(pid\(?s?\)? [\d, ]+\) is killed by signal: Killed",
        says="A worker of the DataLoader was killed, as the kernel does when the host runs out of memory.",
    ),
    Printed(
        r"The node was low on resource: memory|[Tt]he worker may have exceeded K8s pod memory limits"
        r"|slurmstepd: error: [^\n]*[Ee]xceeded (?:job |step )?memory limit",
        says="The job was ended because it used more memory than it was allowed.",
        ranks=False,
    ),
    Printed(
        r"[Dd]etected \d+ oom[-_]kill event|oom-kill:constraint=|(?:[Oo]ut of memory|OOM): Kill(?:ed)? process|\bOOMKilled\b",
        says="The kernel killed a process of the job when the host ran out of memory.",
        ranks=False,
    ),
    Printed(r"srun: error: [^\n]*task (?P<rank>\d+): Out Of Memory", says="Task {rank} was ended: its memory is used up."),
    Printed(
        r"[Ee]xited with (?:exit )?code:? ?137\b|terminated with exit code 137\b|[Ee]xit [Cc]ode:\s{1,12}137\b",
        nowhere=_OTHERWISE + r"|OOMKilled",
        says="A container was ended by SIGKILL (exit code 137): most often for lack of memory, else by Kubernetes or a person.",
        next="kubectl describe pod tells OOMKilled from Evicted and Preempted; docker inspect has State.OOMKilled.",
        ranks=False,
    ),
    Printed(
        r"killed due to the node running low on memory|killed due to memory pressure \(OOM\)",
        says="Ray killed a process of the job when the host ran out of memory.",
        ranks=False,
    ),
)
# SIGKILL alone: torchrun sends it only after SIGTERM, so it never ends the rank that failed first.
_SIGKILL = (
    Printed(
        r"Root Cause \(first observed failure\):\s{1,40}\[\d{1,6}\]:\s{1,40}(?:[^\n]{0,200}\n\s{0,40}){0,3}?" + _ENTRY,
        nowhere=_OTHERWISE,
        says="The launcher saw rank {rank} end first, " + _KILLED,
    ),
    Printed(
        r"failed \(exitcode: -9\) local_rank: (?P<rank>\d+)",
        nowhere=_OTHERWISE + r"|(?:--|\b)(?:nnodes|node_rank|group_rank)[= ](?![01]\b)\d",
        says="The launcher saw local rank {rank} end first, " + _KILLED,
    ),
    Printed(
        r"failed \(exitcode: -9\) local_rank: (?P<local>\d+)",
        nowhere=_OTHERWISE,
        says="The launcher saw local rank {local} of one host end first, " + _KILLED,
        ranks=False,
    ),
    Printed(r"process (?P<rank>\d+) terminated with signal SIGKILL", nowhere=_OTHERWISE, says="Process {rank} was ended " + _KILLED),
    Printed(
        r"'--local_rank=(?P<rank>\d+)'[^\n]* exits with return code = -9\b",
        nowhere=_OTHERWISE,
        says="The process with local rank {rank} was ended " + _KILLED,
    ),
    Printed(
        r"died with <Signals\.SIGKILL: 9>|exits with return code = -9\b",
        nowhere=_OTHERWISE,
        says="A process of the job was ended " + _KILLED,
        ranks=False,
    ),
    Printed(r"process rank (?P<rank>\d+) with PID [^\n]* exited on signal 9 \(Killed\)", nowhere=_OTHERWISE, says="Rank {rank} was ended " + _KILLED),
    Printed(
        r": line \d+: +\d+ Killed\b|(?m:^Killed {0,4}$)|\(interrupted by signal 9: ?SIGKILL\)",
        nowhere=_OTHERWISE,
        says="The program was ended " + _KILLED,
        ranks=False,
    ),
)

RULE = Rule(
    id="DDP223",
    slug="host-out-of-memory",
    cause="host_out_of_memory",
    title="The job needs more memory than the host has.",
    symptom=(
        "'DefaultCPUAllocator: can't allocate memory', MemoryError, 'DataLoader worker is killed by signal: Killed', or exit code -9 (SIGKILL) of "
        "one rank and no traceback."
    ),
    evidence=(
        "The message of the allocator or the kernel; or a SIGKILL that ended a rank while oom_kills rose on its host. In a "
        "plain log, also a SIGKILL that ended a rank first, according to its launcher, if nothing else failed."
    ),
    remedy="Look for the kernel's message (dmesg -T | grep -i 'out of memory'; memory.events of the container). Then use less memory in each rank: "
    "fewer DataLoader workers, "
    "no copy of the data or the checkpoint per rank (map_location='meta' or mmap=True, load on one rank), no offload to the CPU; "
    "or ask the scheduler for more memory.",
    restart="after",  # Memory has to be freed or asked for; until then it ends in the same way.
    needs=("process.end", "device.state", "launcher.child"),
    printed=_SAID + _SIGKILL,
    yields_to=("card-out-of-memory", "shared-memory-too-small"),
)


def check(run: Run) -> Iterator[Finding]:
    """Use the words of the processes that ran out of memory, and the kernel's count; of other signals another rule tells."""
    by_words = list(by_text(RULE._replace(printed=_SAID), run))
    yield from by_words or _killed(run)


def _killed(run: Run) -> Iterator[Finding]:
    """Find ranks that SIGKILL ended on a host where the kernel has killed a process of the control group since the job began."""
    ends = deaths(run)
    for host in sorted({process.host for process in run.processes}):
        there = {rank for rank, process in run.ranks.items() if process.host == host and process.end is None}
        ranks = sorted(rank for rank in there if rank in ends and ends[rank].signal == "SIGKILL")
        counts = _counts(run, host) if ranks else []
        if not counts or counts[0].kills == counts[-1].kills:
            continue
        first, last = counts[0], counts[-1]
        yield RULE.found(
            ranks=ranks,
            verdict=say(
                "{who:capital} {who:was|were} killed by the kernel for lack of memory: {memory} on {host} was used up, "
                "and the kernel's count of such kills rose from {before} to {after}.",
                who=named(ranks),
                memory=_used_up(run, host),
                host=host or say("the host"),
                before=first.kills,
                after=last.kills,
            ),
            evidence=[shown(counted.call, say("oom_kills is {count}", count=counted.kills)) for counted in (first, last)],
            when=last.call.when,
            explains=[failure for failure in run.failures if failure.consequence],
        )


class _Count(NamedTuple):
    """The kernel's count of kills for lack of memory, in one line."""

    call: "LoggedCall[Any]"
    kills: int


def _counts(run: Run, host: str) -> List[_Count]:
    """Return the counts of a host's ranks and of their launcher, by time."""
    counts = [_Count(call, system.oom_kills) for call, system in _states(run, host) if system.oom_kills is not None]
    for launcher in (launcher for launcher in run.launchers if launcher.host == host):
        groups = launcher.calls(schema.LauncherGroup)
        began = groups[-1].when if groups else 0.0  # An earlier generation has its own kills.
        calls: List[LoggedCall[Any]] = [*groups[-1:], *(call for call in launcher.calls(schema.LauncherChild) if call.when >= began)]
        counts += [_Count(call, call.begin.oom_kills) for call in calls if call.begin.oom_kills is not None]
    return sorted(counts, key=lambda count: count.call.when)


def _states(run: Run, host: str) -> Iterator[Tuple["LoggedCall[schema.DeviceState]", schema.HostState]]:
    for process in run.processes:
        if process.host == host:
            for call in process.calls(schema.DeviceState):
                if call.begin.system is not None:
                    yield call, call.begin.system


def _used_up(run: Run, host: str) -> Text:
    limits = [system.memory_limit for _, system in _states(run, host) if system.memory_limit is not None]
    if not limits:
        return say("the memory")
    return say("the control group's {limit:.1f} GiB", limit=limits[-1] / (1 << 30))
