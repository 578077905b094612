"""Tells which rank, which line, why and what to do when a distributed PyTorch job dies, hangs or uses one card of eight.

The types of what is public are in __init__.pyi; docs/api.md describes it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

__all__ = ["Diagnosis", "Run", "activate", "diagnose", "read", "restore"]
__version__ = "0.1.0"


def activate() -> None:
    """Arm this process whatever the environment says; late is fine."""
    from ddp_probe import activation

    activation.activate()


def restore() -> Any:
    """Put every original back and return the certificate: each place, restored or not, checked by identity."""
    from ddp_probe import activation

    return activation.restore()


def __getattr__(name: str) -> Any:
    """Load what reads a run when it is asked for: a rank imports this package too, and loads none of it."""
    if name not in __all__:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    from importlib import import_module

    return getattr(import_module("ddp_probe.api"), name)


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
