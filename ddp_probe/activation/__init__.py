"""Decides, in every interpreter of a job, whether and as what it is armed; standard library only.

`lifecycle` holds the state and its transitions. What is here is how the activator, ddp_probe.activate() and ddp_probe.restore() reach it.
"""

from __future__ import annotations

from ddp_probe import settings
from ddp_probe.activation import lifecycle as _lifecycle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["activate", "restore", "session", "start", "state"]


def start() -> None:
    """Arm this process as its environment and role ask; the activator calls this at every start of an interpreter."""
    if settings.get(settings.PROBE):
        _lifecycle.lifecycle.guarded(_lifecycle.START)


def activate() -> None:
    """Arm this process whatever its environment says, also late."""
    _lifecycle.lifecycle.guarded(_lifecycle.ACTIVATE)


def restore() -> Any:
    """Undo everything; return the certificate, or None if nothing was patched."""
    return _lifecycle.lifecycle.happened(_lifecycle.RESTORE)


def state() -> str:
    """Return the state of this process: one of lifecycle.STATES."""
    return _lifecycle.lifecycle.state


def session() -> Any:
    """Return what watches and writes in this process, loading it first."""
    return _lifecycle.lifecycle.load_session()
