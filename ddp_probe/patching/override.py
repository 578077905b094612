"""A mend is a watch that may change a call: before it, in place of it, or after it has failed. There is none without DDP_PROBE_FIX."""

from typing import Any, Callable, Dict, Optional

from .call import Call
from .observer import Observer

Finish = Callable[[Any], Any]


class Change:
    """What a mend wants: other arguments by parameter name, or a result in place of the call; and what to do once the call is over."""

    __slots__ = ("arguments", "done", "instead", "left", "result")

    def __init__(self, arguments: Optional[Dict[str, Any]] = None) -> None:
        self.arguments: Dict[str, Any] = arguments or {}  # Those that change; the others stay as they were passed.
        self.instead = False
        self.result: Any = None
        self.done: Optional[Callable[[], None]] = None  # After the original has returned; what it raises is the call's failure.
        self.left: Optional[Callable[[], None]] = None  # After the original, or done, has raised.

    @classmethod
    def to(cls, result: Any) -> "Change":
        """Answer this, and leave the original uncalled."""
        change = cls()
        change.instead, change.result = True, result
        return change


class Override(Observer):
    """Base class of every remedy. The guard runs both moments: a fault of ours leaves the call as the job made it."""

    tries: int = 1
    """How often a call that fails may be made again."""

    def prepare(self, call: Call) -> Optional[Change]:
        """Return what to change before the original runs, or None."""
        return None

    def rescue(self, call: Call, exc: BaseException) -> Optional[Change]:
        """Return what to change now that the original has raised, and it is called again; None lets the exception pass."""
        return None

    def settled(self, call: Call, result: Any) -> Optional[Change]:
        """Return what to change where a result must not be believed, and the original is called again; None lets it pass."""
        return None

    def undo(self) -> None:
        """Take back what outlives the calls that were changed; restore() asks for it."""
