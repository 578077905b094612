"""The memory of a host's control group, or its /dev/shm, is nearly used up."""

from typing import Dict, Iterator, List

from ddp_probe.judging.memory import NearLimit, near_limits, system
from ddp_probe.judging.rule import WARNING, Finding, Rule, shown
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import size

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
    restart="after",  # What fills the memory has to go first.
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
        for near in near_limits(run)[host]:
            what = _of_group if near.what == "host" else _of_shm
            yield _finding(processes, near, what(host or say("the host"), near, processes))


def _of_group(host: str, near: NearLimit, processes: List[LoggedProcess]) -> Text:
    own = sum(max((state.anonymous or 0 for _, state in system(process)), default=0) for process in processes)
    return say(
        "the control group on {host} uses {used} of {limit}, not counting the file cache; its ranks themselves have used up to {own}",
        host=host,
        used=size(near.used),
        limit=size(near.there),
        own=size(own),
    )


def _of_shm(host: str, near: NearLimit, _: List[LoggedProcess]) -> Text:
    free = near.there - near.used
    return say(
        "the shared memory (/dev/shm) of {host} has {free} of {limit} free",
        host=host,
        free=size(free),
        limit=size(near.there),
    )


def _finding(processes: List[LoggedProcess], near: NearLimit, what: Text) -> Finding:
    return RULE.found(
        ranks=ranks_of(processes),
        verdict=say("{what:capital}, at '{when}' of rank {rank}.", what=what, when=near.call.begin.when, rank=near.process.rank),
        evidence=[shown(near.call, say("{share:.0f} % are in use", share=100 * near.share))],
        when=near.call.when,
    )
