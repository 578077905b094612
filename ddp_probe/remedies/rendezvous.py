"""Variables of the rendezvous that nobody has set and that follow from others."""

import os
import re
import socket
import zlib
from typing import TYPE_CHECKING, Dict, Mapping, Optional, Tuple

from ddp_probe.activation._roles import RankInfo, rank_info
from ddp_probe.patching import Call
from ddp_probe.patching.override import Change
from ddp_probe.remedies._remedy import Remedy

if TYPE_CHECKING:
    from ddp_probe.probes._session import Session

_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# mmengine's mpi branch copies rank and size itself, wants MASTER_ADDR, and leaves LOCAL_RANK to wrap_model, which reads it.
_NEEDED_UNDER_MPI = ("LOCAL_RANK", "MASTER_ADDR")
# How many ranks there are on this host, and how many there are.
_SIZES = (
    ("LOCAL_WORLD_SIZE", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_SIZE"),
    ("MPI_LOCALNRANKS", "PMI_SIZE"),
)
# Set by a scheduler or a launcher; a process that has one of them may not be the only one.
_LAUNCHED = re.compile(r"SLURM_(PROCID|NTASKS|STEP_ID)|(OMPI|MV2)_COMM_WORLD_\w+|PMIX?_(RANK|SIZE)|RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE")
_NODE = re.compile(r"(?P<name>[^,\[\]]+)(?:\[(?P<number>\d+)[\d,-]*\])?(?:,|$)")
_PORTS, _FIRST_PORT = 12000, 20000  # below the ports that Linux gives to outgoing connections


class Rendezvous(Remedy):
    """RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT are filled in where one value follows from the others."""

    name = "fix.rendezvous"
    targets = ("torch.distributed.distributed_c10d:init_process_group", "mmengine.dist.utils:init_dist")
    when = "A variable is missing, and the launcher, the scheduler or a world of one process tells its value."
    for_good = "Start the job with torchrun, which sets all of them."

    def __init__(self, session: "Session") -> None:
        super().__init__(session)
        self._filled: Dict[str, str] = {}

    def prepare(self, call: Call) -> Optional[Change]:
        """Fill the environment; arguments of the call are not touched."""
        missing = [name for name in _needed(call) if not os.environ.get(name)]
        if not missing:
            return None
        found = follow(os.environ)
        unknown = [name for name in missing if name not in found]
        if unknown:
            self.declined(call, "no launcher or scheduler tells %s" % " and ".join(unknown))
            return None
        filled = {name: value for name, value in found.items() if not os.environ.get(name)}
        self.applied(call, dict.fromkeys(filled, "unset"), filled, "one value follows from the environment")
        os.environ.update(filled)
        self._filled.update(filled)
        return Change()

    def undo(self) -> None:
        """Take the variables back, where nobody has changed them since."""
        for name, value in self._filled.items():
            if os.environ.get(name) == value:
                del os.environ[name]
        self._filled.clear()


def _needed(call: Call) -> Tuple[str, ...]:
    """Return what the call will read of the environment: nothing with a store, an address or a rank given in code."""
    given = call.arguments()
    if call.target.qualname == "init_dist":
        return {"pytorch": _NEEDED, "mpi": _NEEDED_UNDER_MPI}.get(str(given.get("launcher")), ())
    method = given.get("init_method")
    from_environment = method is None or (isinstance(method, str) and method.startswith("env://"))
    return _NEEDED if from_environment and given.get("store") is None and given.get("rank", -1) == -1 else ()


def follow(env: Mapping[str, str]) -> Dict[str, str]:
    """Return every value that the environment tells, set or not. All of a process's place comes from one launcher, or from none."""
    here = rank_info(env)
    if env.get("WORLD_SIZE") == "1" or not any(map(_LAUNCHED.fullmatch, env)):
        return _alone(env)
    found: Dict[str, str] = {}
    # LOCAL_RANK alone tells a rank only where all ranks are on one host.
    if here.rank is not None and (here.launcher != "environment" or env.get("RANK") or _one_host(env)):
        found["RANK"] = str(here.rank)
    if here.world_size is not None:
        found["WORLD_SIZE"] = (env.get("SLURM_STEP_NUM_TASKS") if here.launcher == "slurm" else "") or str(here.world_size)
    if here.local_rank is not None:
        found["LOCAL_RANK"] = str(here.local_rank)
    found.update(_master(env, here))
    return found


def _alone(env: Mapping[str, str]) -> Dict[str, str]:
    """A process that nobody has launched is a world of one; one that is to meet others elsewhere has only been launched badly."""
    if env.get("MASTER_ADDR", "127.0.0.1") not in ("", "127.0.0.1", "localhost", "::1", socket.gethostname()):
        return {}
    found = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
    return {**found, "MASTER_PORT": env.get("MASTER_PORT") or _free_port()}


def _master(env: Mapping[str, str], here: RankInfo) -> Dict[str, str]:
    """Return where rank 0 listens: on the first host of the step, at a port that the job's name gives to all of its ranks alike."""
    found: Dict[str, str] = {}
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_NODELIST") or env.get("SLURM_JOB_NODELIST") or ""
    first = first_host(nodes) if here.launcher == "slurm" else ""
    address = "127.0.0.1" if _one_host(env) else first
    if address:
        found["MASTER_ADDR"] = address
    job = _job(env, here)
    if job:
        found["MASTER_PORT"] = str(_FIRST_PORT + zlib.crc32(job.encode("utf-8", "replace")) % _PORTS)
    return {**found, **{name: env[name] for name in ("MASTER_ADDR", "MASTER_PORT") if env.get(name)}}


def _one_host(env: Mapping[str, str]) -> bool:
    """Tell that all ranks are on this host."""
    return any(env.get(local) and env.get(local) == env.get(world) for local, world in _SIZES)


def _job(env: Mapping[str, str], here: RankInfo) -> str:
    if here.launcher == "slurm":
        return "%s.%s" % (env.get("SLURM_JOB_ID", ""), env.get("SLURM_STEP_ID", "")) if env.get("SLURM_JOB_ID") else ""
    return env.get("PMIX_NAMESPACE", "") if here.launcher == "mpi" else ""


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def first_host(nodes: str) -> str:
    """Return the first host of a list of SLURM, such as node[03-07,9],login; empty where it reads otherwise."""
    found = _NODE.match(nodes)
    return found["name"] + (found["number"] or "") if found else ""


REMEDY = Rendezvous
