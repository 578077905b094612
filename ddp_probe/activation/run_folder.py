"""The run's folder: its name, and how all processes of one launch come to agree on it.

The folder itself is made with the first line that is written. Nothing here writes.
"""

from __future__ import annotations

import os
import time

from ddp_probe.activation.roles import HELPER, LAUNCHER, RANK
from ddp_probe.shared import settings
from ddp_probe.shared.ours import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Mapping, Optional

# Ranks that are started by hand meet in one folder: those of one loop come within a moment of each other even if the first fails at
# once; whoever comes later belongs to a launch of which somebody still runs.
_TOGETHER_SECONDS = 20.0
_ELSEWHERE_SECONDS = 1800.0


def root(environ: Mapping[str, str]) -> str:
    """Return the folder that collects the runs."""
    return os.path.abspath(settings.get(settings.DIR, environ) or "ddp_probe_runs")


def folder(role: str, rank: Optional[int], environ: Mapping[str, str]) -> str:
    """Return the run's folder for this process.

    A launcher above has named it; or the scheduler's job has; or the program that made us by multiprocessing has.
    A launcher or a program of its own takes a new name, so that two launches at a time never share a folder.
    """
    given = environ.get(settings.RUN.name)
    below_a_rank = role == LAUNCHER and environ.get(settings.ARMED.name)
    if given and role in (LAUNCHER, RANK, HELPER) and not below_a_rank:
        return given
    origin = environ.get(settings.ORIGIN.name)
    if origin and role in (RANK, HELPER):
        return origin
    base = root(environ)
    # mpirun in an sbatch script starts the ranks of its own host itself and those of other hosts through srun: only the latter have a step.
    step = "" if environ.get("OMPI_COMM_WORLD_RANK") else _slurm_step(environ)
    if step and role in (LAUNCHER, RANK):
        return os.path.join(base, step)
    if role == RANK:
        return _joined(base, _common_name(environ), rank or 0)
    return os.path.join(base, fresh_name())


def fresh_name() -> str:
    """Return a name that no other launch takes: UTC time, pid and a random part."""
    return "%s-%d-%s" % (time.strftime("%Y%m%d-%H%M%S", time.gmtime()), os.getpid(), os.urandom(2).hex())


def _slurm_step(environ: Mapping[str, str]) -> str:
    job, step = environ.get("SLURM_JOB_ID", ""), environ.get("SLURM_STEP_ID", "")
    if not job or not step:
        return ""
    again = environ.get("SLURM_RESTART_COUNT", "0")
    return _file_name("slurm-%s.%s" % (job, step) + ("" if again == "0" else "-r" + again))


def _common_name(environ: Mapping[str, str]) -> str:
    """Name what ranks without a Python launcher have in common: their MPI job, or their rendezvous; each may have a parent of its own."""
    for variable in ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "TORCHELASTIC_RUN_ID", "LSB_JOBID", "PBS_JOBID"):
        value = environ.get(variable)
        if value and value != "none":
            return _file_name("job-" + value)
    port = environ.get("MASTER_PORT", "")
    if not port:
        return _file_name("session-%s-%d" % (_host(), os.getsid(0)))
    address = environ.get("MASTER_ADDR", "localhost")
    own = address in ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104  # compared with, not listened on
    return _file_name("ranks-%s-%s" % (_host() if own else address, port))


def _file_name(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in text)[:120]


def _host() -> str:
    return os.uname().nodename.split(".")[0]


def _joined(base: str, name: str, rank: int) -> str:
    """Return the newest folder of that name if this rank can belong to it, else the next one; ranks that start together come to the same."""
    number = max((_number(entry, name) for entry in _list(base)), default=-1)
    path = os.path.join(base, name if number < 1 else "%s.%d" % (name, number))
    if number < 0 or _is_open(path, rank):
        return path
    return os.path.join(base, "%s.%d" % (name, number + 1))


def _number(entry: str, name: str) -> int:
    if entry == name:
        return 0
    rest = entry[len(name) + 1 :] if entry.startswith(name + ".") else ""
    return int(rest) if rest.isdigit() and rest.isascii() and rest[0] != "0" else -1


def _list(folder: str) -> List[str]:
    try:
        return os.listdir(folder)
    except ours(OSError):
        return []


def _is_open(folder: str, rank: int) -> bool:
    """Tell whether a rank can belong to a launch: it has no file yet, and somebody still runs, or has come a moment ago."""
    files = [name for name in _list(folder) if name.startswith("rank") and name.endswith(".jsonl")]
    if any(name.startswith("rank%05d." % rank) for name in files):
        return False
    try:
        age = time.time() - os.stat(folder).st_mtime  # since the last one came
    except ours(OSError):
        return True
    return age < _TOGETHER_SECONDS or any(_runs(folder, name) for name in files)


def _runs(folder: str, file: str) -> bool:
    """Tell whether the process of a file may still run: on this host by its pid, on another one while the file is fresh and has no last line."""
    parts = file.split(".")
    try:
        written = os.stat(os.path.join(folder, file)).st_mtime
        if parts[1] == _host():
            return _started(int(parts[2])) <= written + 1.0
        return time.time() - written < _ELSEWHERE_SECONDS and b'"event":"process.end"' not in _tail(os.path.join(folder, file))
    except ours(OSError, ValueError, IndexError):
        return False


def _started(pid: int) -> float:
    """Return when a process started; a later one than the file is another process that has got its pid."""
    with open("/proc/%d/stat" % pid, "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    if fields[0] in (b"Z", b"X"):
        raise ProcessLookupError
    with open("/proc/uptime", "rb") as file:
        up = float(file.read().split()[0])
    return time.time() - up + int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _tail(path: str) -> bytes:
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 8192))
        return file.read()
