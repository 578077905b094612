"""An override is an observer that may change a call: before it, instead of it, or after it. There is none without DDP_PROBE_FIX."""

from typing import Any, Optional

from ddp_probe.traced.patching.call import Call
from ddp_probe.traced.patching.observer import Observer

from .change import Change


class Override(Observer):
    """An observer that may change a call; the base class of every remedy. If it fails, the call runs as the job made it."""

    overrides = True

    tries: int = 1
    """How often a call may be made again."""

    def prepare(self, call: Call) -> Optional[Change]:
        """Return what to change before the original runs, or None."""
        return None

    def rescue(self, call: Call, exc: BaseException) -> Optional[Change]:
        """Return what to change now that the original has raised, and it is called again; None lets the exception pass."""
        return None

    def settled(self, call: Call, result: Any) -> Optional[Change]:
        """Return what to change if the result must not be trusted, and the original is called again; None lets the result pass."""
        return None

    def record(self, call: Call, change: Change) -> None:
        """Write down a change. The plan calls this for every change, and makes none for which this raises."""
        raise NotImplementedError("%s does not say how its changes are recorded." % type(self).__name__)

    def undo(self) -> None:
        """Take back what outlives the calls that were changed; restore() asks for it."""
