"""What is intercepted, and in which part of a job, known before anything of the probe is loaded.

The probes and the remedies declare their targets in their own files; ddp_probe/shared/declared.py is printed from those.
Rows name the *defining* module: patched there the moment it has been executed, every later alias already is the wrapper.
"""

from __future__ import annotations

from ddp_probe.activation.roles import HELPER, LAUNCHER, RANK, SOLO
from ddp_probe.shared import declared, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List, Tuple

PROGRAM: Tuple[str, ...] = (RANK, SOLO)
"""The roles of what trains."""

LAUNCH: Tuple[str, ...] = (LAUNCHER, SOLO)
"""The roles of what starts ranks."""

FIX = "fix."
"""Before a remedy's name, as its targets' rows, the guard and the faults name it."""

PROMOTES = "torch.distributed.distributed_c10d"
"""A helper listens for this module alone: who calls its init_process_group is a rank."""


class TargetRow:
    """One target: the probe that watches it, the module that defines it, and the roles it is watched in."""

    __slots__ = ("module", "optional", "probe", "qualname", "roles")

    def __init__(self, probe: str, module: str, qualname: str, roles: Tuple[str, ...] = PROGRAM, optional: bool = False) -> None:
        self.probe = probe
        self.module = module
        self.qualname = qualname
        self.roles = roles
        self.optional = optional

    def __str__(self) -> str:
        return "%s.%s" % (self.module, self.qualname)


TARGETS: Tuple[TargetRow, ...] = tuple(TargetRow(*row) for row in declared.TARGETS)


def rows(role: str) -> List[TargetRow]:
    """Return the targets that are watched in this role."""
    return [row for row in TARGETS if role in row.roles]


def remedy_rows(names: Iterable[str]) -> List[TargetRow]:
    """Return the targets that these remedies may change."""
    wanted = set(names)
    return [TargetRow(FIX + name, module, qualname, optional=True) for name, module, qualname in declared.REMEDY_TARGETS if name in wanted]


def modules(role: str) -> List[str]:
    """Return the modules that a process in this role waits for: those of its targets, and of the remedies that DDP_PROBE_FIX asks for."""
    if role == HELPER:
        return [PROMOTES]
    changed = remedy_rows(settings.get(settings.FIX)) if role in PROGRAM else []
    return sorted({row.module for row in [*rows(role), *changed]})
