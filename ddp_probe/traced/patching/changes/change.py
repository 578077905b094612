"""A change to one call, together with the record of it: no change can be built without saying what it is."""

from typing import Any, Callable, Dict, Optional

Step = Optional[Callable[[], None]]


class Change:
    """What an override wants for one call. before, after and because are what the plan has recorded before it makes the change.

    arguments: other arguments by parameter name; the rest stay as they were passed.
    commit: runs after the original has returned; what it raises is the call's failure.
    rollback: runs after the original, or a commit, has raised.
    precaution: the job may well have succeeded without it.
    revert: runs if the change cannot be recorded; takes back what the override has done already and what would outlive the call.
    """

    __slots__ = ("after", "answers", "arguments", "because", "before", "commit", "precaution", "result", "revert", "rollback")

    def __init__(
        self,
        before: Dict[str, Any],
        after: Dict[str, Any],
        because: str,
        *,
        arguments: Optional[Dict[str, Any]] = None,
        commit: Step = None,
        rollback: Step = None,
        revert: Step = None,
        precaution: bool = False,
    ) -> None:
        self.before = before
        self.after = after
        self.because = because
        self.arguments: Dict[str, Any] = arguments or {}
        self.commit = commit
        self.rollback = rollback
        self.revert = revert
        self.precaution = precaution
        self.answers = False
        self.result: Any = None

    @classmethod
    def answer(cls, result: Any, before: Dict[str, Any], after: Dict[str, Any], because: str, **more: Any) -> "Change":
        """Return this result to the job; the original is not called (again)."""
        change = cls(before, after, because, **more)
        change.answers, change.result = True, result
        return change
