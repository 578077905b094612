"""Who this process is in its launch, and at which address the ranks of the launch meet."""

import hashlib
import os
import re
from typing import List, Mapping, NamedTuple, Tuple

from ddp_probe.shared.rank_info import rank_info

_NAMES = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "LSB_JOBID", "PBS_JOBID")
_PORTS, _FIRST_PORT = 10000, 20000  # Below the ports that Linux hands out.


class MeetingPlace(NamedTuple):
    """The address at which the ranks of a launch meet, and the rank of this process."""

    rank: int
    world: int
    address: str  # Of the host of rank 0.
    port: int
    run: str  # Launches with another name do not meet.
    token: str  # What the ranks of the launch know, and others do not.


def is_launch(environ: Mapping[str, str]) -> bool:
    """Return whether this process is one rank of several."""
    here = rank_info(environ)
    return here.rank is not None and (here.world_size or 1) > 1


def leads_host(environ: Mapping[str, str]) -> bool:
    """Return whether this rank acts for all ranks on its host."""
    return rank_info(environ).local_rank in (None, 0)


def missing(environ: Mapping[str, str]) -> List[str]:
    """Return the variables that are not set as ranks need them to meet."""
    names = [] if environ.get("MASTER_ADDR") else ["MASTER_ADDR"]
    return names if environ.get("MASTER_PORT", "").isdigit() else [*names, "MASTER_PORT"]


def place(environ: Mapping[str, str]) -> MeetingPlace:
    """Return the place of a process whose environment has all the variables; see `missing`."""
    here = rank_info(environ)
    run = environ.get("TORCHELASTIC_RUN_ID") or environ.get("SLURM_JOB_ID") or ""
    port = int(environ["MASTER_PORT"])
    return MeetingPlace(here.rank or 0, here.world_size or 1, environ["MASTER_ADDR"], port, run, _token(environ, port))


def fresh_token() -> str:
    """Return a new token, from the random source of the system."""
    return os.urandom(32).hex()


def _token(environ: Mapping[str, str], port: int) -> str:
    """Make a token of what a launcher gives all its ranks: the name of the launch, if there is one, and MASTER_PORT."""
    name = next((environ[variable] for variable in _NAMES if environ.get(variable)), "")
    return hashlib.sha256(b"ddp_probe meets\0%s\0%d" % (os.fsencode(name), port)).hexdigest()


def of_slurm_step(environ: Mapping[str, str]) -> Tuple[str, int]:
    """Return an address and a port on which all tasks of a step of SLURM agree; without a step, an empty one.

    Task 0 is on the first host of the step, unless the step was started with --distribution=arbitrary or plane.
    """
    job, step = environ.get("SLURM_JOB_ID", ""), environ.get("SLURM_STEP_ID", "")
    host = _first_host(environ.get("SLURM_STEP_NODELIST", ""))
    if not (host and job.isdigit() and step.isdigit()):
        return "", 0
    return host, _FIRST_PORT + (int(job) * 31 + int(step)) % _PORTS


def _first_host(nodes: str) -> str:
    """Return the first of a list of hosts such as gpu[007-011,20]-ib,login1."""
    found = re.match(r"([^\[\],\s]+)?(?:\[(\d+)[\d,-]*\]([^\[\],\s]*))?", nodes)
    return "".join(part or "" for part in found.groups()) if found else ""


def agent_key(environ: Mapping[str, str], purpose: str) -> str:
    """Return the key in the store of torchrun's agent, if the agent listens at MASTER_PORT; ranks that it starts again meet under another one."""
    if environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return ""
    return "ddp_probe_%s/%s" % (purpose, environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def host_identity() -> str:
    """Return what tells this host from the others; containers of one machine are hosts if each has a network of its own."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return "%s %s" % (file.read().strip(), os.readlink("/proc/self/ns/net"))
