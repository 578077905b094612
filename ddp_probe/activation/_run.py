"""The run's folder: its name, and how all processes of one launch come to agree on it.

The folder itself is made with the first line that is written. Nothing here writes.
"""

from __future__ import annotations

import os
import time

from ddp_probe import settings
from ddp_probe.activation._roles import HELPER, LAUNCHER, RANK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, Optional

# A hand-started rank joins a folder only while others of its launch can still be arriving.
_JOIN_SECONDS = 600.0


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
    step = _slurm_step(environ)
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
    """Name what ranks without a Python launcher have in common: their MPI job, or their rendezvous and parent."""
    for variable in ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "TORCHELASTIC_RUN_ID", "LSB_JOBID", "PBS_JOBID"):
        value = environ.get(variable)
        if value and value != "none":
            return _file_name("job-" + value)
    return _file_name("port-%s-parent-%d" % (environ.get("MASTER_PORT", "none"), os.getppid()))


def _file_name(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in text)[:120]


def _joined(base: str, name: str, rank: int) -> str:
    """Return the first folder of that name where this rank has no file yet and others may still be arriving."""
    for number in range(10000):
        path = os.path.join(base, name if number == 0 else "%s.%d" % (name, number))
        try:
            files = os.listdir(path)
            age = time.time() - os.stat(path).st_mtime
        except OSError:
            return path
        if age < _JOIN_SECONDS and not any(file.startswith("rank%05d." % rank) for file in files):
            return path
    return os.path.join(base, fresh_name())
