"""The remedies that DDP_PROBE_FIX asks for; without it there are none, and none is loaded."""

import importlib
import os
from typing import TYPE_CHECKING, Any, Tuple

from ddp_probe.activation.targets import FIX, PROGRAM, remedy_rows
from ddp_probe.shared import settings

if TYPE_CHECKING:
    from ddp_probe.traced.remedies import RemedySession


class Remedies:
    """Which remedies are asked for in this process, and what they may change."""

    def __init__(self, role: str) -> None:
        self.names: Tuple[str, ...] = settings.get(settings.FIX) if role in (*PROGRAM, "helper") else ()
        self.mistake = _mistake() if role in PROGRAM else ""
        self.rows = remedy_rows(self.names)

    def load(self, name: str, session: "RemedySession") -> Any:
        """Return the remedy that a row names, or None if the row names a probe."""
        return _class(name[len(FIX) :])(session) if name.startswith(FIX) else None


def _mistake() -> str:
    wrong = settings.mistakes(os.environ).get(settings.FIX.name)
    return "%s: %s Nothing is changed." % (settings.FIX.name, wrong) if wrong else ""


def _class(name: str) -> Any:
    return importlib.import_module("ddp_probe.traced.remedies." + name.replace("-", "_")).REMEDY
