"""An observer is what a probe does around a call: three moments, each of them optional."""

from typing import Any

from .call import Call


class Observer:
    """Callbacks around a patched call: before it, after it, and on an error. The guard runs them, and their return values are ignored."""

    name: str = "observer"
    outermost: bool = False
    """True: while one call of this observer is open in a thread, nested calls of the same observer are not seen."""
    always: bool = False
    """True: calls are seen even while the switch is off; the probe that turns the switch on needs that."""
    overrides: bool = False
    """True: it is an Override, which may change the call."""

    def forget(self) -> None:
        """Reset the counters, in a fork that has become a rank of its own."""

    def before(self, call: Call) -> None:
        """Look at the call before the original runs."""

    def after(self, call: Call, result: Any) -> None:
        """Look at what the original returned."""

    def error(self, call: Call, exc: BaseException) -> None:
        """Look at what the original raised; it reaches the job whatever happens here."""
