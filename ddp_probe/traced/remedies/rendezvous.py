"""Rendezvous variables that are not set and that follow from others."""

import os
import re
import socket
import zlib
from typing import Dict, Mapping, NamedTuple, Optional, Tuple

from ddp_probe.shared.rank_info import RankInfo, rank_info
from ddp_probe.traced.patching import Call, Change
from ddp_probe.traced.remedies import Remedy
from ddp_probe.traced.session import Session

_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# mmengine's mpi branch copies rank and size itself, needs MASTER_ADDR, and does not set LOCAL_RANK, which wrap_model reads.
_NEEDED_UNDER_MPI = ("LOCAL_RANK", "MASTER_ADDR")


class _Sizes(NamedTuple):
    """The variables for the number of ranks on this host, and for the number of all ranks."""

    host: str
    world: str


_SIZES = (
    _Sizes("LOCAL_WORLD_SIZE", "WORLD_SIZE"),
    _Sizes("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"),
    _Sizes("MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_SIZE"),
    _Sizes("MPI_LOCALNRANKS", "PMI_SIZE"),
)
# Set by a scheduler or a launcher; a process with one of them may not be the only one.
_LAUNCHED = re.compile(r"SLURM_(PROCID|NTASKS|STEP_ID)|(OMPI|MV2)_COMM_WORLD_\w+|PMIX?_(RANK|SIZE)|RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE")
_NODE = re.compile(r"(?P<name>[^,\[\]]+)(?:\[(?P<number>\d+)[\d,-]*\])?(?:,|$)")
_PORTS, _FIRST_PORT = 12000, 20000  # Below the ports that Linux gives to outgoing connections.


class Rendezvous(Remedy):
    """RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT are filled in if one value follows from the others."""

    word = "rendezvous"
    order = 30
    targets = ("torch.distributed.distributed_c10d:init_process_group", "mmengine.dist.utils:init_dist")
    when = "A variable is missing, and the launcher, the scheduler or a world of one process determines its value."
    for_good = "Start the job with torchrun, which sets all of them."

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._filled: Dict[str, str] = {}

    def prepare(self, call: Call) -> Optional[Change]:
        """Fill the environment; the arguments of the call stay as they are."""
        missing = [name for name in _needed(call) if not os.environ.get(name)]
        if not missing:
            return None
        variables = follow(os.environ)
        unknown = [name for name in missing if name not in variables]
        if unknown:
            self.declined(call, "no launcher or scheduler tells %s" % " and ".join(unknown))
            return None
        filled = {name: value for name, value in variables.items() if not os.environ.get(name)}
        os.environ.update(filled)
        self._filled.update(filled)
        return Change(dict.fromkeys(filled, "unset"), filled, "one value follows from the environment", revert=lambda: self._take_back(filled))

    def undo(self) -> None:
        """Take the variables back."""
        self._take_back(dict(self._filled))

    def _take_back(self, filled: Dict[str, str]) -> None:
        """Remove variables that nobody has changed since."""
        for name, value in filled.items():
            if os.environ.get(name) == value:
                del os.environ[name]
            self._filled.pop(name, None)


def _needed(call: Call) -> Tuple[str, ...]:
    """Return the variables that the call will read: none if a store, an address or a rank is given in code."""
    given = call.arguments()
    if call.target.qualname == "init_dist":
        return {"pytorch": _NEEDED, "mpi": _NEEDED_UNDER_MPI}.get(str(given.get("launcher")), ())
    method = given.get("init_method")
    from_environment = method is None or (isinstance(method, str) and method.startswith("env://"))
    return _NEEDED if from_environment and given.get("store") is None and given.get("rank", -1) == -1 else ()


def follow(env: Mapping[str, str]) -> Dict[str, str]:
    """Return every value that follows from the environment, set or not. All of them come from one launcher, or from none."""
    here = rank_info(env)
    if env.get("WORLD_SIZE") == "1" or not any(map(_LAUNCHED.fullmatch, env)):
        return _alone(env)
    variables: Dict[str, str] = {}
    # LOCAL_RANK alone gives the rank only if all ranks are on one host.
    if here.rank is not None and (here.launcher != "environment" or env.get("RANK") or _one_host(env)):
        variables["RANK"] = str(here.rank)
    if here.world_size is not None:
        variables["WORLD_SIZE"] = (env.get("SLURM_STEP_NUM_TASKS") if here.launcher == "slurm" else "") or str(here.world_size)
    if here.local_rank is not None:
        variables["LOCAL_RANK"] = str(here.local_rank)
    variables.update(_master(env, here))
    return variables


def _alone(env: Mapping[str, str]) -> Dict[str, str]:
    """Return the world of one of a process without a launcher; nothing if MASTER_ADDR names another host, as then ranks are missing."""
    if env.get("MASTER_ADDR", "127.0.0.1") not in ("", "127.0.0.1", "localhost", "::1", socket.gethostname()):
        return {}
    variables = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
    return {**variables, "MASTER_PORT": env.get("MASTER_PORT") or _free_port()}


def _master(env: Mapping[str, str], here: RankInfo) -> Dict[str, str]:
    """Return where rank 0 listens: on the first host of the step, at a port derived from the job's name, which is the same on all ranks."""
    variables: Dict[str, str] = {}
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_NODELIST") or env.get("SLURM_JOB_NODELIST") or ""
    first = first_host(nodes) if here.launcher == "slurm" else ""
    address = "127.0.0.1" if _one_host(env) else first
    if address:
        variables["MASTER_ADDR"] = address
    job = _job(env, here)
    if job:
        variables["MASTER_PORT"] = str(_FIRST_PORT + zlib.crc32(job.encode("utf-8", "replace")) % _PORTS)
    return {**variables, **{name: env[name] for name in ("MASTER_ADDR", "MASTER_PORT") if env.get(name)}}


def _one_host(env: Mapping[str, str]) -> bool:
    """Tell whether all ranks are on this host."""
    return any(env.get(sizes.host) and env.get(sizes.host) == env.get(sizes.world) for sizes in _SIZES)


def _job(env: Mapping[str, str], here: RankInfo) -> str:
    if here.launcher == "slurm":
        return "%s.%s" % (env.get("SLURM_JOB_ID", ""), env.get("SLURM_STEP_ID", "")) if env.get("SLURM_JOB_ID") else ""
    return env.get("PMIX_NAMESPACE", "") if here.launcher == "mpi" else ""


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def first_host(nodes: str) -> str:
    """Return the first host of a SLURM node list such as node[03-07,9],login; empty if it has another form."""
    match = _NODE.match(nodes)
    return match["name"] + (match["number"] or "") if match else ""


REMEDY = Rendezvous
