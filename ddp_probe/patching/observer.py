"""A watch is what a probe does around a call: three moments, each of them optional."""

from typing import Any

from .call import Call


class Observer:
    """Base class of every probe's watch. The guard runs each moment, and no return value is looked at."""

    name: str = "watch"
    outermost: bool = False
    """True: while one call of this watch is open in a thread, nested calls of the same watch are not seen."""
    always: bool = False
    """True: calls are seen also while the switch is off, as by the probe that turns it on."""

    def forget(self) -> None:
        """Count from nothing, in a fork that has become a rank of its own."""

    def before(self, call: Call) -> None:
        """Look at the call before the original runs."""

    def after(self, call: Call, result: Any) -> None:
        """Look at what the original returned."""

    def error(self, call: Call, exc: BaseException) -> None:
        """Look at what the original raised; it passes on to the job whatever happens here."""
