"""Finds the ranks on this host among its processes: by the environment with which each was started, by its parent, and by its connections."""

import os
import re
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ddp_probe.reading import proc_files
from ddp_probe.reading.proc_files import Stat
from ddp_probe.shared.errors import UnusableError, UsageError
from ddp_probe.shared.rank_info import rank_info
from ddp_probe.wording.text import joined, say
from ddp_probe.wording.words import listed, quoted

KEPT = (
    "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE MASTER_ADDR MASTER_PORT TORCHELASTIC_RUN_ID SLURM_JOB_ID SLURM_PROCID"
    " SLURM_LOCALID SLURM_NTASKS SLURM_STEP_ID OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_SIZE"
    " PMI_RANK PMI_SIZE PMIX_RANK PMIX_NAMESPACE DDP_PROBE_RUN"
).split()
_HERE = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")  # How many ranks of the job are on this host.
_LAUNCHES = re.compile(
    r"(?:^|/)(?:torchrun|accelerate|deepspeed|mpirun|mpiexec(?:\.hydra)?|srun|composer|horovodrun)$|^torch\.distributed\.(?:run|launch)$"
)
_SPAWNED = re.compile(r"multiprocessing\.(?:spawn|forkserver)|^ray::")
_TORCH = "libtorch"
_MOST = 16


class Member(NamedTuple):
    """One rank of a job; without a pid there is no process for it."""

    rank: int
    pid: int
    born: int
    local_rank: Optional[int]
    world_size: Optional[int]
    launcher: str
    because: str
    environment: Dict[str, str]
    parent: int


class Job(NamedTuple):
    """The ranks of one job on this host."""

    members: List[Member]
    beside: List[str]  # Processes that may belong to it and could not be read, with the reason.

    @property
    def said(self) -> str:
        """Return how a person tells this job from another."""
        first = next((member for member in self.members if member.pid), self.members[0])
        ranks = joined([str(member.rank) for member in self.members[:8]], by=", ")
        command = quoted(proc_files.command(first.pid)) or say("no command line")
        return say("process {pid}: {command} (ranks {ranks})", pid=first.pid, command=command, ranks=ranks)


def find(pid: Optional[int], every: bool) -> List[Job]:
    """Return the job that a process is of, all jobs, or the only one; say what there is if that does not decide."""
    seen = {process.pid: process for process in map(proc_files.stat, proc_files.pids()) if process is not None}
    if pid is not None and pid not in seen:
        raise UnusableError(
            what=say("No such process: {pid}.", pid=pid),
            why="It has ended, or runs on another host.",
            what_to_do=_LISTS,
        )
    environments = {number: proc_files.environ(number) for number in seen if number != os.getpid()}
    closed = _closed(seen, environments, pid)
    jobs = [Job(members, closed) for members in [*_by_environment(seen, environments), *_spawned(seen, environments)]]
    if pid is not None:
        jobs = [job for job in jobs if _is_of(pid, job, seen)]
    if not jobs:
        raise _none(pid, closed if pid is None else _closed(seen, _near(pid, seen, environments), pid))
    if len(jobs) > 1 and not every:
        raise UsageError(
            say(
                "{count} jobs run on this host. {jobs}",
                count=len(jobs),
                jobs=listed([job.said for job in jobs[:8]], by="; "),
            ),
            "Name a process of one of them, or look at all: python -m ddp_probe attach --all",
        )
    return jobs


_LISTS = say("ps -ef lists the processes; without a number, attach finds the ranks itself.")


def _near(pid: int, seen: Mapping[int, Stat], environments: Mapping[int, Optional[Dict[str, str]]]) -> Dict[int, Optional[Dict[str, str]]]:
    """Return the environments of a process, of those above it and of those below it: what others run beside it is not asked for."""
    above = _above(pid, seen)
    return {number: env for number, env in environments.items() if number == pid or number in above or pid in _above(number, seen)}


def _none(pid: Optional[int], closed: List[str]) -> UnusableError:
    if closed:
        return UnusableError(what="No rank can be looked at.", why="; ".join(closed[:4]) + ".", what_to_do="Run the command that the reason names.")
    if pid is not None:
        why = say(
            "Its environment and its parents name no rank (RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK), and no group of processes like it is there."
        )
        what = say("Process {pid} is of no distributed job.", pid=pid)
        return UnusableError(what=what, why=why, what_to_do=_LISTS)
    return UnusableError(
        what="No distributed job runs on this host.",
        why="No process here has a rank in its environment (RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK), nor has one started several with torch.",
        what_to_do="Run it on the host of the ranks, or outside of their container: docs/attach.md has the lines for several hosts.",
    )


def _by_environment(seen: Mapping[int, Stat], environments: Mapping[int, Optional[Dict[str, str]]]) -> List[List[Member]]:
    """Return the ranks whose environment names them, by job."""
    alike: Dict[Tuple[Tuple[str, ...], int], List[int]] = {}
    for pid, env in environments.items():
        info = rank_info(env or {})
        if env and info.rank is not None and _is_python(pid, seen[pid]) and not _launches(pid):
            alike.setdefault((_job(env, info.launcher), info.rank), []).append(pid)
    jobs: Dict[Tuple[str, ...], List[Member]] = {}
    for (job, _), pids in alike.items():
        jobs.setdefault(job, []).append(_member(seen[_main(pids, seen)], environments))
    for job, first in list(_firsts(jobs, seen, environments)):
        jobs.setdefault(job, []).append(first)
    return [sorted([*members, *_absent(members, seen)], key=lambda member: member.rank) for members in jobs.values()]


def _job(env: Mapping[str, str], launcher: str) -> Tuple[str, ...]:
    """Return what the ranks of a job have in common."""
    if launcher == "slurm":
        return launcher, env.get("SLURM_JOB_ID", ""), env.get("SLURM_STEP_ID", "")
    if launcher == "mpi":
        return launcher, env.get("PMIX_NAMESPACE", ""), env.get("SLURM_JOB_ID", "")
    return "address", env.get("MASTER_ADDR", ""), env.get("MASTER_PORT", ""), env.get("TORCHELASTIC_RUN_ID", "")


def _main(pids: Sequence[int], seen: Mapping[int, Stat]) -> int:
    """Return the rank itself among the processes that have its environment: workers and tools are below it, a wrapper has not loaded torch."""
    loaded = [pid for pid in pids if proc_files.has_loaded(pid, _TORCH)] or list(pids)
    top = [pid for pid in loaded if not _above(pid, seen) & set(loaded)]
    return min(top, key=lambda pid: (seen[pid].born, pid))


def _above(pid: int, seen: Mapping[int, Stat]) -> Set[int]:
    """Return the ancestors of a process."""
    ancestors: Set[int] = set()
    while pid in seen and seen[pid].parent not in ancestors:
        pid = seen[pid].parent
        ancestors.add(pid)
    return ancestors


def _member(process: Stat, environments: Mapping[int, Optional[Dict[str, str]]]) -> Member:
    env = environments[process.pid] or {}
    info = rank_info(env)
    because = "The environment of process %d names rank %s (%s)." % (process.pid, info.rank, info.launcher)
    kept = {name: env[name] for name in KEPT if name in env}
    return Member(info.rank or 0, process.pid, process.born, info.local_rank, info.world_size, info.launcher, because, kept, process.parent)


def _firsts(
    jobs: Mapping[Tuple[str, ...], Sequence[Member]], seen: Mapping[int, Stat], environments: Mapping[int, Optional[Dict[str, str]]]
) -> Iterator[Tuple[Tuple[str, ...], Member]]:
    """Yield the first ranks of Lightning, whose environment names none: one has started the others by its own command, or knows its host's number."""
    ranks: Set[int] = set()
    for members in jobs.values():
        ranks.update(member.pid for member in members)
    for job, members in jobs.items():
        for parent in {member.parent for member in members if member.local_rank} - ranks:
            sibling, *rest = [member for member in members if member.parent == parent]
            if _is_first(parent, environments) and _program(parent) == _program(sibling.pid) and all(member.local_rank for member in rest):
                because = "Process %d has started the other ranks of its host by its own command." % parent
                env = {**sibling.environment, "LOCAL_RANK": "0"}
                number, process = sibling.rank - (sibling.local_rank or 0), seen[parent]
                about = sibling.world_size, sibling.launcher, because, env, process.parent
                yield job, Member(number, parent, process.born, 0, *about)
                ranks.add(parent)
    for pid in sorted(environments, key=lambda pid: seen[pid].born):  # Its workers have the same environment.
        env = environments[pid] or {}
        of_host = env.get("NODE_RANK", "").isdigit() and bool(env.get("MASTER_ADDR")) and rank_info(env).rank is None
        if of_host and _is_python(pid, seen[pid]) and _is_first(pid, environments) and not ranks & ({pid} | _above(pid, seen)):
            because = "The environment of process %d names its host (NODE_RANK), and it has started no other rank." % pid
            kept = {name: env[name] for name in KEPT if name in env}
            first = Member(int(env["NODE_RANK"]), pid, seen[pid].born, 0, None, "environment", because, kept, seen[pid].parent)
            yield _job(env, "environment"), first
            ranks.add(pid)


def _is_first(pid: int, environments: Mapping[int, Optional[Dict[str, str]]]) -> bool:
    return environments.get(pid) is not None and not _launches(pid) and proc_files.has_loaded(pid, _TORCH)


def _program(pid: int) -> List[str]:
    return [os.path.basename(word) for word in proc_files.argv(pid)[1:]]


def _absent(members: Sequence[Member], seen: Mapping[int, Stat]) -> List[Member]:
    """Return the ranks of this host for which there is no process, or a dead one that nobody has waited for."""
    sibling = next((member for member in members if member.local_rank is not None and _here(member.environment)), None)
    if sibling is None or sibling.local_rank is None:
        return []
    present, parents = {member.rank for member in members}, {member.parent for member in members}
    first = sibling.rank - sibling.local_rank
    missing = [rank for rank in range(first, first + _here(sibling.environment)) if rank not in present]
    gone = [process for process in seen.values() if process.state in proc_files.GONE]
    dead = sorted(process.pid for process in gone if process.parent in parents)
    pids = dead if len(dead) == len(missing) else [0] * len(missing)
    env = {name: value for name, value in sibling.environment.items() if name not in ("RANK", "LOCAL_RANK")}
    about = sibling.world_size, sibling.launcher, "The others of its host name it.", env, sibling.parent
    absent = []
    for rank, pid in zip(missing, pids):
        absent.append(Member(rank, pid, seen[pid].born if pid else 0, rank - first, *about))
    return absent


def _here(env: Mapping[str, str]) -> int:
    number = next((env[name] for name in _HERE if env.get(name, "").isdigit()), "0")
    return int(number) if len(number) < 6 else 0


def _spawned(seen: Mapping[int, Stat], environments: Mapping[int, Optional[Dict[str, str]]]) -> List[List[Member]]:
    """Return the groups of processes without a rank that one program has started (mp.spawn, Ray): the order of their start tells the rank."""
    below: Dict[int, List[int]] = {}
    for pid, env in environments.items():
        words = proc_files.argv(pid) if env is not None and rank_info(env).rank is None else []
        if words and _is_python(pid, seen[pid]) and (_SPAWNED.search(" ".join(words)) or words == proc_files.argv(seen[pid].parent)):
            below.setdefault(seen[pid].parent, []).append(pid)
    groups = []
    for parent, children in below.items():
        ranks = sorted((pid for pid in children if proc_files.has_loaded(pid, _TORCH)), key=lambda pid: (seen[pid].born, pid))
        if len(ranks) > 1 and _connected(ranks) and not _has_rank(parent, environments):
            groups.append([_by_order(number, seen[pid], len(ranks), environments) for number, pid in enumerate(ranks)])
    return groups


def _connected(ranks: Sequence[int]) -> bool:
    from ddp_probe.attaching import proc

    return any(proc.opened(pid)[1] for pid in ranks)


def _has_rank(pid: int, environments: Mapping[int, Optional[Dict[str, str]]]) -> bool:
    return rank_info(environments.get(pid) or {}).rank is not None


def _by_order(number: int, process: Stat, count: int, environments: Mapping[int, Optional[Dict[str, str]]]) -> Member:
    env = environments[process.pid] or {}
    because = "It is number %d of %d that process %d has started; the order of their start tells the rank." % (number + 1, count, process.parent)
    kept = {name: env[name] for name in KEPT if name in env}
    return Member(number, process.pid, process.born, number, count, "multiprocessing", because, kept, process.parent)


def _is_python(pid: int, process: Stat) -> bool:
    words = proc_files.argv(pid)
    return process.name.startswith(("python", "pt_main_thread", "ray::")) or os.path.basename((words or [""])[0]).startswith(("python", "ray::"))


def _launches(pid: int) -> bool:
    return any(_LAUNCHES.search(word) for word in proc_files.argv(pid)[:6])


def _is_of(pid: int, job: Job, seen: Mapping[int, Stat]) -> bool:
    """Tell whether a process is a rank of a job, a child of one, or above one."""
    own = {member.pid for member in job.members}
    return bool(own & ({pid} | _above(pid, seen)) - {0, 1}) or any(pid in _above(member, seen) for member in own if pid > 1)


def _closed(seen: Mapping[int, Stat], environments: Mapping[int, Optional[Dict[str, str]]], pid: Optional[int]) -> List[str]:
    """Say which Python processes could not be read: those that a launcher has started, and the one that was asked for."""
    closed: List[str] = []
    for number, env in environments.items():
        if env is not None or seen[number].state in proc_files.GONE:
            continue
        if number == pid or (_is_python(number, seen[number]) and _launches(seen[number].parent)):
            from ddp_probe.attaching.privileges import refusal

            why, allow = refusal(number)
            closed.append(
                say(
                    "process {pid} ({command}) may not be read: {why}; {allow}",
                    pid=number,
                    command=proc_files.command(number)[:80] or seen[number].name,
                    why=why,
                    allow=allow,
                )
            )
    return closed[:_MOST]
