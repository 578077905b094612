"""The first line of a file: who this process is, what it was started with, what it finds without touching it."""

import os
import sys
from typing import TYPE_CHECKING, Dict, Mapping, Optional, Set, Tuple

import ddp_probe
from ddp_probe.shared import accelerators, schema, settings
from ddp_probe.shared.masks import mask, mask_argv, masked, secret_name
from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts import accelerator_state, birth
from ddp_probe.traced.facts.versions import versions

if TYPE_CHECKING:
    from ddp_probe.activation.this_process import ThisProcess

_CHARACTERS = 1000
_VARIABLES = 400

# Group -> (its purpose, names, prefixes).
NAMED: Tuple[Tuple[str, Tuple[str, ...], Tuple[str, ...]], ...] = (
    (
        "The identity of this process, as set by its launcher.",
        (
            "RANK",
            "LOCAL_RANK",
            "WORLD_SIZE",
            "LOCAL_WORLD_SIZE",
            "GROUP_RANK",
            "GROUP_WORLD_SIZE",
            "NODE_RANK",
            "ROLE_RANK",
            "ROLE_WORLD_SIZE",
            "NNODES",
        ),
        ("MASTER_",),
    ),
    (
        "Schedulers and MPI: the rank if no torch launcher set it.",
        (
            "SLURM_JOB_ID",
            "SLURM_PROCID",
            "SLURM_LOCALID",
            "SLURM_NODEID",
            "SLURM_NTASKS",
            "SLURM_NNODES",
            "SLURM_NODELIST",
            "SLURM_JOB_NODELIST",
            "SLURM_NTASKS_PER_NODE",
            "SLURM_GPUS_ON_NODE",
            "SLURM_STEP_ID",
            "SLURM_RESTART_COUNT",
            "PALS_RANKID",
            "PALS_LOCAL_RANKID",
            "JSM_NAMESPACE_RANK",
            "LSB_JOBID",
            "PBS_JOBID",
            "RAY_JOB_ID",
        ),
        ("OMPI_COMM_WORLD_", "PMI_", "PMIX_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_"),
    ),
    (
        "Communication libraries; the vendors' backends and runtimes are in ddp_probe/shared/accelerators.py.",
        ("UCX_TLS", "UCX_NET_DEVICES", "FI_PROVIDER"),
        ("GLOO_",),
    ),
    (
        "torch itself, and the memory of its allocators.",
        ("USE_LIBUV", "TP_SOCKET_IFNAME", "KINETO_USE_DAEMON"),
        ("TORCH", "PYTORCH_"),
    ),
    (
        "Threads: ranks on one host compete for its cores.",
        (),
        ("OMP_", "MKL_", "KMP_", "OPENBLAS_", "GOMP_", "NUMEXPR_"),
    ),
    (
        "Python and the loader: which code really runs.",
        (
            "PYTHONHASHSEED",
            "PYTHONPATH",
            "PYTHONHOME",
            "PYTHONFAULTHANDLER",
            "PYTHONUNBUFFERED",
            "PYTHONNOUSERSITE",
            "PYTHONOPTIMIZE",
            "PYTHONDONTWRITEBYTECODE",
            "LD_LIBRARY_PATH",
            "LD_PRELOAD",
            "VIRTUAL_ENV",
            "CONDA_PREFIX",
        ),
        (),
    ),
    (
        "Libraries above torch that start ranks or move models themselves.",
        ("TOKENIZERS_PARALLELISM", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"),
        ("ACCELERATE_", "FSDP_", "DEEPSPEED_", "MMENGINE_"),
    ),
    ("The probe's own settings.", (), ("DDP_PROBE",)),
)

_NAMES: Set[str] = set()
_BEGINNINGS: Tuple[str, ...] = ()
for _, _group_names, _group_beginnings in NAMED:
    _NAMES.update(_group_names)
    _BEGINNINGS += _group_beginnings


def environment(environ: Optional[Mapping[str, str]] = None) -> Dict[str, str]:
    """Return the variables of the list that are set, except those with a secret's name; values are masked."""
    env = os.environ if environ is None else environ
    named, beginnings = _NAMES.union(accelerators.visible_variables()), _BEGINNINGS + accelerators.runtime_variables()
    chosen = [name for name in sorted(env) if (name in named or name.startswith(beginnings)) and not secret_name(name)]
    return {name: masked(env.get(name, ""), _CHARACTERS) for name in chosen[:_VARIABLES]}


_FLAGS = ("debug", "dont_write_bytecode", "ignore_environment", "isolated", "no_site", "no_user_site", "optimize", "utf8_mode", "dev_mode")


def first_event(process: "ThisProcess") -> schema.Event:
    """Return process.start, or launcher.start if this process starts the ranks."""
    if process.role.name == "launcher":
        return _launcher(process)
    return schema.ProcessStart(
        schema=schema.VERSION,
        probe=ddp_probe.__version__,
        role="promoted" if process.joined else process.role.name,
        role_because=process.role.because,
        versions=versions(),
        implementation=sys.implementation.name,
        executable=mask(sys.executable or ""),
        argv=mask_argv(process.argv),
        cwd=_cwd(),
        launcher=process.rank_info.launcher,
        environment=environment(),
        hash_seed=_hash_seed(),
        flags=_flags(),
        accelerators=accelerator_state.accelerators(),
        cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        ppid=os.getppid(),
        born=birth.born(),
        boot=birth.boot(),
        parent=birth.parent() if process.role.name == "solo" else [],
        settings=settings.mistakes(),
    )


def _launcher(process: "ThisProcess") -> schema.LauncherStart:
    return schema.LauncherStart(
        schema=schema.VERSION,
        probe=ddp_probe.__version__,
        launcher=process.launcher_name,
        argv=mask_argv(process.argv),
        cwd=_cwd(),
        versions=versions(),
        environment=environment(),
    )


def _cwd() -> str:
    try:
        return mask(os.getcwd())
    except ours(OSError):  # the folder has been removed
        return ""


def _hash_seed() -> str:
    if not sys.flags.hash_randomization:
        return "0"
    return os.environ.get("PYTHONHASHSEED", "random")


def _flags() -> Dict[str, int]:
    flags = {name: int(getattr(sys.flags, name, 0)) for name in _FLAGS}
    return {name: value for name, value in flags.items() if value}
