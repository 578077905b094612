"""Looks at the ranks of a job several times, some seconds apart, and writes what is seen as a separate run, which every other command reads."""

import os
import platform
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Dict, List, NamedTuple, Tuple

import msgspec

import ddp_probe
from ddp_probe.attaching import proc, py_spy
from ddp_probe.attaching.ranks import Job, Member
from ddp_probe.reading import find, proc_files
from ddp_probe.shared import schema
from ddp_probe.shared.errors import UnusableError
from ddp_probe.shared.masks import mask, mask_argv, mask_value
from ddp_probe.shared.schema import ProcessLook, ProcessStart
from ddp_probe.wording.text import say

ROLE = "looked at"
_AT_ONCE, _MOST = 8, 64


class Looks(NamedTuple):
    """The run that was written, and what looking has cost."""

    folder: str
    processes: int
    seconds: float  # Reading alone, without the time between looks.
    pauses: List[float]  # Of each time that a process was stopped.


def look(job: Job, *, looks: int, apart: float, native: bool, together: bool) -> Looks:
    """Look, wait, look again, and write a run."""
    folder = _folder(job)
    name = os.path.basename(folder)
    files = {member.rank: _File(folder, member, name) for member in job.members}
    took, pauses = 0.0, []
    for number in range(1, looks + 1):
        began = time.monotonic()
        for member, seen in _all(job, number, native=native, at_once=_AT_ONCE if together or not native else 1):
            seen.beside = job.beside if member is job.members[0] and number == 1 else []
            files[member.rank].write(seen)
            pauses += [seen.paused] if seen.paused else []
        took += time.monotonic() - began
        if number < looks:
            time.sleep(apart / (looks - 1))
    return Looks(folder, len(job.members), took, pauses)


def _all(job: Job, number: int, *, native: bool, at_once: int) -> List[Tuple[Member, ProcessLook]]:
    """Look at all ranks at once if nobody is stopped, else at one after the other: a pause of one rank is never that of two."""
    with ThreadPoolExecutor(min(at_once, len(job.members))) as pool:
        return list(pool.map(lambda member: (member, _one(member, number, native=native)), job.members))


def _one(member: Member, number: int, *, native: bool) -> ProcessLook:
    """Look at one process. What is done to it first is nothing: /proc is read, and its memory only if it is the same process and not stopped."""
    seen = ProcessLook(phase="point", number=number, state="X")
    seen.ts, seen.mono_ns = datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z"), time.monotonic_ns()
    now = proc_files.stat(member.pid) if member.pid else None
    if now is None:
        seen.problem = "there is no process %d any more" % member.pid if member.pid else "there is no process for this rank"
        return seen
    if now.born != member.born:
        seen.problem = "process %d is another one now: it was started later" % member.pid
        return seen
    seen.state, seen.cpu_seconds, seen.wchan, seen.switches = now.state, now.cpu, proc.wchan(member.pid), proc.switches(member.pid)
    if now.state in proc_files.GONE:
        seen.problem = "process %d has ended%s, and its parent %d has not waited for it" % (member.pid, _how(now.ended), now.parent)
        return seen
    seen.system = proc.system(member.pid)
    seen.files, seen.sockets, seen.cards = proc.opened(member.pid)
    seen.children_cpu = now.waited
    _children(member.pid, seen)
    read = py_spy.read(member.pid, native=native)
    seen.threads, seen.native, seen.paused, seen.problem, seen.allow = read
    return seen


def _how(status: int) -> str:
    """Say how a process has ended, by what its parent will see."""
    number = status & 0x7F
    if number:
        return " by %s" % {name.value: name.name for name in signal.Signals}.get(number, "signal %d" % number)
    return " with exit code %d" % (status >> 8) if status else ""


def _children(pid: int, seen: ProcessLook) -> None:
    """Note what it has started; a compiler is often started by one of these, and has ended at the next look."""
    below = proc.children(pid)
    for number, child in enumerate(below):  # It grows.
        now = proc_files.stat(child)
        if now is not None:
            if number < _MOST:
                seen.children[str(child)] = "%s %s" % (now.state, mask(now.name))
            seen.children_cpu = round(seen.children_cpu + now.cpu + now.waited, 2)
            below += proc.children(child) if len(below) < _MOST else []


class _File:
    """The file of one rank, in the form that the rank's own would have."""

    def __init__(self, folder: str, member: Member, run: str) -> None:
        host = platform.node() or "localhost"
        self._path = os.path.join(folder, "rank%05d.%s.%d.jsonl" % (member.rank, host.replace("/", "_"), member.pid))
        self._who = {
            "rank": member.rank,
            "local_rank": member.local_rank,
            "world_size": member.world_size,
            "host": host,
            "pid": member.pid,
            "run": run,
        }
        self._lines = 0
        self.write(_start(member))

    def write(self, event: schema.Event) -> None:
        """Add a line."""
        for field, value in {**self._who, "seq": self._lines}.items():
            setattr(event, field, value)
        data = msgspec.json.encode(event, enc_hook=str) + b"\n"
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, data)
        finally:
            os.close(file)
        self._lines += 1


def _start(member: Member) -> ProcessStart:
    words = proc_files.argv(member.pid) if member.pid else []
    start = ProcessStart(phase="point", schema=schema.VERSION, probe=ddp_probe.__version__, role=ROLE, role_because=member.because)
    start.ts, start.mono_ns = datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z"), time.monotonic_ns()
    start.argv, start.launcher, start.ppid = mask_argv(words), member.launcher, member.parent
    start.environment = {name: mask_value(name, value) for name, value in member.environment.items()}
    start.born, start.boot = member.born or None, proc_files.text("sys/kernel/random/boot_id").strip()
    return start


def _folder(job: Job) -> str:
    """Make the folder of the run, in the folder of all runs."""
    first: Dict[str, str] = next((member.environment for member in job.members if member.environment), {})
    job_id = first.get("SLURM_JOB_ID", "")
    began, of_job = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S"), "-" + job_id if job_id.isdigit() else ""
    name = "%s%s%s-%d" % (find.LOOK, began, of_job, os.getpid())
    for nth in range(1000):
        path = os.path.join(find.root(), name + ("-%d" % nth if nth else ""))
        try:
            os.makedirs(path, 0o700)
        except FileExistsError:
            continue
        except OSError as exc:
            raise UnusableError(
                what=say("{path} cannot be made.", path=path),
                why=exc.strerror or str(exc),
                what_to_do="Name another folder: DDP_PROBE_DIR=/tmp/ddp_probe_runs python -m ddp_probe attach",
            ) from exc
        return path
    raise AssertionError(name)
