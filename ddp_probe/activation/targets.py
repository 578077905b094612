"""What is intercepted, and in which part of a job: one row a target, known before anything of the probe is loaded.

Rows name the *defining* module: patched there the moment it has been executed, every later alias already is the wrapper.
"""

from __future__ import annotations

from ddp_probe import settings
from ddp_probe.accelerators import set_device_targets
from ddp_probe.activation._roles import HELPER, LAUNCHER, RANK, SOLO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple

_PROGRAM = (RANK, SOLO)
_LAUNCH = (LAUNCHER, SOLO)

PROMOTES = "torch.distributed.distributed_c10d"
"""A helper listens for this module alone: who calls its init_process_group is a rank."""


class TargetRow:
    """One target: the probe that watches it, where it is defined, and the roles it is watched in."""

    __slots__ = ("module", "optional", "probe", "qualname", "roles")

    def __init__(self, probe: str, module: str, qualname: str, roles: Tuple[str, ...] = _PROGRAM, optional: bool = False) -> None:
        self.probe = probe
        self.module = module
        self.qualname = qualname
        self.roles = roles
        self.optional = optional

    def __str__(self) -> str:
        return "%s.%s" % (self.module, self.qualname)


def _set_device(module: str, qualname: str) -> TargetRow:
    return TargetRow("set_device", module, qualname, optional=module != "torch.cuda")


TARGETS: Tuple[TargetRow, ...] = (
    TargetRow("init_dist", "mmengine.dist.utils", "init_dist"),
    TargetRow("process_group", "torch.distributed.distributed_c10d", "init_process_group"),
    TargetRow("process_group", "torch.distributed.distributed_c10d", "destroy_process_group"),
    TargetRow("process_group", "torch.distributed.distributed_c10d", "new_group"),
    *(_set_device(*place.split(":")) for place in set_device_targets()),
    TargetRow("module_move", "torch.nn.modules.module", "Module.to"),
    TargetRow("module_move", "torch.nn.modules.module", "Module.cuda"),
    TargetRow("module_move", "torch.nn.modules.module", "Module.cpu"),
    TargetRow("module_move", "torch.nn.modules.module", "Module.xpu"),
    TargetRow("wrap_model", "mmengine.runner.runner", "Runner.wrap_model"),
    TargetRow("wrap_model", "mmengine._strategy.single_device", "SingleDeviceStrategy._wrap_model"),
    TargetRow("wrap_model", "mmengine._strategy.distributed", "DDPStrategy._wrap_model"),
    TargetRow("wrap_model", "mmengine._strategy.fsdp", "FSDPStrategy._wrap_model", optional=True),
    TargetRow("wrap_model", "mmengine._strategy.deepspeed", "DeepSpeedStrategy._wrap_model", optional=True),
    TargetRow("ddp", "torch.nn.parallel.distributed", "DistributedDataParallel.__init__"),
    TargetRow("ddp", "torch.distributed.fsdp.fully_sharded_data_parallel", "FullyShardedDataParallel.__init__"),
    TargetRow("ddp", "torch.distributed.fsdp._fully_shard._fully_shard", "fully_shard", optional=True),
    TargetRow("ddp", "mmengine.model.wrappers.seperate_distributed", "MMSeparateDistributedDataParallel.__init__"),
    TargetRow("load", "torch.serialization", "load"),
    TargetRow("save", "torch.serialization", "save"),
    TargetRow("launcher", "torch.distributed.launcher.api", "launch_agent", _LAUNCH),
    TargetRow("launcher", "torch.distributed.elastic.multiprocessing.api", "PContext.start", _LAUNCH),
    TargetRow("launcher", "torch.distributed.elastic.multiprocessing.api", "PContext.close", _LAUNCH),
    TargetRow("spawn", "torch.multiprocessing.spawn", "start_processes"),
)


MENDED: Tuple[str, ...] = ("mmengine.device.utils", "mmengine.fileio.backends.local_backend")
"""Modules that only a remedy has a target in; waited for where DDP_PROBE_FIX is set."""


def rows(role: str) -> List[TargetRow]:
    """Return the targets that are watched in this role."""
    return [row for row in TARGETS if role in row.roles]


def modules(role: str) -> List[str]:
    """Return the modules that a process in this role waits for."""
    if role == HELPER:
        return [PROMOTES]
    mended = MENDED if role in _PROGRAM and settings.get(settings.FIX) else ()
    return sorted({row.module for row in rows(role)}.union(mended))
