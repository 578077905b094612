"""Decides, in every interpreter of a job, whether and as what it is armed; standard library only.

`lifecycle` holds the state and its transitions. What is here is how the activator, ddp_probe.activate() and ddp_probe.restore() reach it.
It is loaded when it is needed: the commands use other parts of this package, and work even if it is damaged.
"""

from __future__ import annotations

from ddp_probe.shared import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ddp_probe.activation.lifecycle import Lifecycle

__all__ = ["activate", "restore", "session", "start", "state"]


def start() -> None:
    """Arm this process as its environment and role ask; the activator calls this at every start of an interpreter."""
    if settings.get(settings.PROBE):
        _lifecycle().guarded("start")


def activate() -> None:
    """Arm this process whatever its environment says, also late."""
    _lifecycle().guarded("activate")


def restore() -> Any:
    """Undo everything; return the certificate, or None if nothing was patched."""
    return _lifecycle().happened("restore")


def state() -> str:
    """Return the state of this process: one of lifecycle.STATES."""
    return _lifecycle().state


def session() -> Any:
    """Return what watches and writes in this process, loading it first."""
    return _lifecycle().load_session()


def _lifecycle() -> Lifecycle:
    from ddp_probe.activation.lifecycle import lifecycle

    return lifecycle
