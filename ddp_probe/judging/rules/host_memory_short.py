"""The memory of a host's control group, or its /dev/shm, is nearly used up."""

from typing import Dict, Iterator, List

from ddp_probe.judging.memory import NearLimit, near_limits, system
from ddp_probe.judging.rule import WARNING, Finding, Rule, shown
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.wording.words import capital, size

RULE = Rule(
    id="DDP231",
    slug="host-memory-short",
    cause="host_out_of_memory",
    title="The memory of a host, or its /dev/shm, is nearly used up.",
    symptom="Nothing yet. Later a rank or a DataLoader worker is killed (SIGKILL), or ends with a bus error.",
    evidence=(
        "device.state: what the control group uses and the kernel cannot reclaim (memory_taken, so without the file cache) is 90 % of its "
        "limit or more, or 10 % of /dev/shm or less is free."
    ),
    remedy=(
        "Use less memory in each rank: fewer DataLoader workers, persistent_workers=False, no copy of the data or of the checkpoint per rank "
        "(mmap=True). Or give the container more: docker run --memory and --shm-size=16g, --mem of Slurm."
    ),
    needs=("device.state",),
    severity=WARNING,
    yields_to=("host-out-of-memory",),
)


def check(run: Run) -> Iterator[Finding]:
    """Look, host by host, for the line with the least room."""
    hosts: Dict[str, List[LoggedProcess]] = {host: [] for host in near_limits(run)}
    for process in run.processes if hosts else ():
        hosts.get(process.host, []).append(process)
    for host, processes in hosts.items():
        for one in near_limits(run)[host]:
            yield _finding(processes, one, (_of_group if one.what == "host" else _of_shm)(host or "the host", one, processes))


def _of_group(host: str, near: NearLimit, processes: List[LoggedProcess]) -> str:
    own = sum(max((state.anonymous or 0 for _, state in system(process)), default=0) for process in processes)
    return "the control group on %s uses %s of %s, not counting the file cache; its ranks themselves have used up to %s" % (
        host,
        size(near.used),
        size(near.there),
        size(own),
    )


def _of_shm(host: str, near: NearLimit, _: List[LoggedProcess]) -> str:
    return "the shared memory (/dev/shm) of %s has %s of %s free" % (host, size(near.there - near.used), size(near.there))


def _finding(processes: List[LoggedProcess], near: NearLimit, what: str) -> Finding:
    return RULE.found(
        ranks=[process.rank for process in processes if process.rank is not None],
        verdict="%s, at '%s' of rank %s." % (capital(what), near.call.begin.when, near.process.rank),
        evidence=[shown(near.call, "%.0f %% are in use" % (100 * near.share))],
        when=near.call.when,
    )
