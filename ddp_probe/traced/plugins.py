"""What third parties add by an entry point: a probe, an accelerator or a processor of each line, in a group of that name.

A probe's entry point names a module like those in this folder: its PROBE declares the targets. The others name an attribute of a module.
"""

import importlib
from typing import Any, Dict, List, Tuple

from ddp_probe.activation.own_imports import jobs_modules
from ddp_probe.activation.targets import PROGRAM, TargetRow
from ddp_probe.shared import accelerators
from ddp_probe.shared.entry_points import entry_points
from ddp_probe.traced.patching import guard
from ddp_probe.traced.record import add_processor

_PROBES, _ACCELERATORS, _PROCESSORS = _GROUPS = ("ddp_probe.probes", "ddp_probe.accelerators", "ddp_probe.processors")


class Plugins:
    """The probes and targets that came from outside; a part that fails to load is a fault, and the others go on."""

    def __init__(self, role: str) -> None:
        self.modules: Dict[str, Any] = {}
        self.rows: List[TargetRow] = []
        self._role = role
        for group, name, value in entry_points(_GROUPS):
            guard.run("plugins", self._load, group, name, value)

    def _load(self, group: str, name: str, value: str) -> None:
        module, _, attribute = value.partition(":")
        with jobs_modules():
            loaded = importlib.import_module(module.strip())
        if group == _PROCESSORS:
            part = "processor " + name
            add_processor(part, getattr(loaded, attribute.strip()), lambda exc: guard.run(part, _fail, exc))
            return
        if group == _ACCELERATORS:
            record = getattr(loaded, attribute.strip())
            accelerators.register(record)
            self._add("set_device", record.set_device, PROGRAM)
            return
        self.modules[name] = loaded
        self._add(name, loaded.PROBE.targets + loaded.PROBE.optional, loaded.PROBE.roles)

    def _add(self, probe: str, targets: Tuple[str, ...], roles: Tuple[str, ...]) -> None:
        if self._role in roles:
            for module, _, qualname in (target.partition(":") for target in targets):
                self.rows.append(TargetRow(probe, module, qualname, roles, optional=True))


def _fail(exc: BaseException) -> None:
    raise exc
