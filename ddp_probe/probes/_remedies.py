"""The remedies that DDP_PROBE_FIX asks for; without it there are none, and none is loaded."""

import importlib
import os
from typing import TYPE_CHECKING, Any, List, Tuple

from ddp_probe import settings
from ddp_probe.activation.targets import TargetRow

if TYPE_CHECKING:
    from ddp_probe.remedies import Session

_ROLES = ("rank", "solo")


class Remedies:
    """Which remedies are asked for in this process, and what they may change."""

    def __init__(self, role: str) -> None:
        self.names: Tuple[str, ...] = settings.get(settings.FIX) if role in (*_ROLES, "helper") else ()
        self.mistake = _mistake() if role in _ROLES else ""
        self.rows: List[TargetRow] = []
        for name in self.names:
            self.rows += [TargetRow("fix." + name, module, qualname, optional=True) for module, qualname in _targets(name)]

    def load(self, name: str, session: "Session") -> Any:
        """Return the remedy that a row names, or None if the row names a probe."""
        return _class(name.partition(".")[2])(session) if name.startswith("fix.") else None


def _mistake() -> str:
    wrong = settings.mistakes(os.environ).get(settings.FIX.name)
    return "%s: %s Nothing is changed." % (settings.FIX.name, wrong) if wrong else ""


def _class(name: str) -> Any:
    return importlib.import_module("ddp_probe.remedies." + name.replace("-", "_")).REMEDY


def _targets(name: str) -> List[Tuple[str, str]]:
    return [(module, qualname) for module, _, qualname in (target.partition(":") for target in _class(name).targets)]
