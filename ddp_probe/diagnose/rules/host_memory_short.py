"""The memory of a host's control group, or its /dev/shm, is nearly used up."""

from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ddp_probe import schema
from ddp_probe.diagnose.memory import StateLine, system
from ddp_probe.diagnose.rule import WARNING, Finding, Rule, shown
from ddp_probe.diagnose.words import capital, size
from ddp_probe.read.model import LoggedProcess, Run

_NEARLY = 0.9

RULE = Rule(
    id="DDP231",
    slug="host-memory-short",
    cause="host_out_of_memory",
    title="The memory of a host, or its /dev/shm, is nearly used up.",
    symptom="Nothing yet. Later a rank or a DataLoader worker is killed (SIGKILL), or ends with a bus error.",
    evidence=(
        "device.state: what the control group holds and the kernel cannot take back (memory_taken, so not the cache of files) is 90 % of its limit "
        "or more, or 10 % of /dev/shm or less is free."
    ),
    remedy=(
        "Use less memory in each rank: fewer DataLoader workers, persistent_workers=False, no copy of the data or of the checkpoint per rank "
        "(mmap=True). Or give the container more: docker run --memory and --shm-size=16g, --mem of Slurm."
    ),
    needs=("device.state",),
    severity=WARNING,
    yields_to=("host-out-of-memory",),
)


class _Short(NamedTuple):
    share: float
    call: StateLine
    process: LoggedProcess
    state: schema.HostState


def check(run: Run) -> Iterator[Finding]:
    """Look, host by host, for the line with the least room."""
    hosts: Dict[str, List[LoggedProcess]] = {}
    for process in run.processes:
        hosts.setdefault(process.host, []).append(process)
    for host, processes in hosts.items():
        group = _most(processes, lambda state: (state.memory_taken, state.memory_limit))
        shm = _most(processes, lambda state: (None if state.shm_free is None else (state.shm_size or 0) - state.shm_free, state.shm_size))
        if group is not None:
            yield _finding(processes, group, _of_group(host or "the host", group, processes))
        if shm is not None:
            free, there = size(shm.state.shm_free or 0), size(shm.state.shm_size or 0)
            yield _finding(processes, shm, "the shared memory (/dev/shm) of %s has %s of %s free" % (host or "the host", free, there))


def _most(processes: List[LoggedProcess], of: Callable[[schema.HostState], Tuple[Optional[int], Optional[int]]]) -> Optional[_Short]:
    found = []
    for process in processes:
        for call, state in system(process):
            used, there = of(state)
            if used is not None and there and used >= _NEARLY * there:
                found.append(_Short(used / there, call, process, state))
    return max(found, key=lambda one: one.share, default=None)


def _of_group(host: str, short: _Short, processes: List[LoggedProcess]) -> str:
    own = sum(max((state.anonymous or 0 for _, state in system(process)), default=0) for process in processes)
    taken, limit = size(short.state.memory_taken or 0), size(short.state.memory_limit or 0)
    return "the control group on %s holds %s of %s without the cache of files; its ranks themselves have held up to %s" % (
        host,
        taken,
        limit,
        size(own),
    )


def _finding(processes: List[LoggedProcess], short: _Short, what: str) -> Finding:
    return RULE.found(
        ranks=[process.rank for process in processes if process.rank is not None],
        verdict="%s, at '%s' of rank %s." % (capital(what), short.call.begin.when, short.process.rank),
        evidence=[shown(short.call, "%.0f %% are in use" % (100 * short.share))],
        when=short.call.when,
    )
