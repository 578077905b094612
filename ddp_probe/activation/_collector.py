"""Lets the garbage collector wait while we load: it would look through all that the job's imports have made, and finds nothing of ours to free."""

from __future__ import annotations

import gc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable


def without_collections(step: Callable[[], None]) -> None:
    """Do this with automatic collection off. `import torch` alone would be met with one full collection more, a twentieth of what it takes."""
    if not gc.isenabled():
        step()
        return
    try:  # Before it is off: a signal handler of the job's may raise at any moment.
        gc.disable()
        step()
    finally:
        gc.enable()
