"""The first line of a file: who this process is, what it was started with, what it finds without touching it."""

import os
import sys
from typing import TYPE_CHECKING, Dict

import ddp_probe
from ddp_probe.shared import schema, settings
from ddp_probe.shared.masking.secrets import mask, mask_argv
from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts import birth
from ddp_probe.traced.facts.accelerator_state import accelerators
from ddp_probe.traced.facts.environment import environment
from ddp_probe.traced.facts.versions import versions

if TYPE_CHECKING:
    from ddp_probe.activation.this_process import ThisProcess

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
        accelerators=accelerators(),
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
    found = {name: int(getattr(sys.flags, name, 0)) for name in _FLAGS}
    return {name: value for name, value in found.items() if value}
