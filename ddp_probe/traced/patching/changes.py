"""What may change a call: the override says what to change, the plan carries it out. Unused without DDP_PROBE_FIX."""

import inspect
from typing import Any, Callable, Dict, List, Optional, Tuple

from ddp_probe.shared.ours import is_the_jobs, raised_by_handler
from ddp_probe.traced.patching.call import Call, Observer
from ddp_probe.traced.patching.guard import guard
from ddp_probe.traced.patching.patch import Patch, PatchSite

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


# An override is an observer that may change a call: before it, instead of it, or after it. There is none without DDP_PROBE_FIX.


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


# Carries out what the overrides of one call want: which arguments to pass, when to call again, what to do afterwards.
#
# The plan never calls the original. The frame of the wrapper does that, so that no other frame of ours is on the stack while the original runs.
# An override that fails is counted by the guard, and the call goes on as it stands.

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

Arguments = Tuple[Tuple[Any, ...], Dict[str, Any]]


class Plan:
    """One call that overrides may change: the arguments of the next attempt, and whether there is one."""

    def __init__(self, wrapper: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs
        self.over = False
        self._result: Any = None
        self._patch_site: PatchSite = wrapper._self_patch_site
        split: Tuple[Any, Tuple[Any, ...]] = wrapper._self_split(args) if self._patch_site.bound else (None, args)
        self._instance = split[0]
        self._leading = len(args) - len(split[1])  # 1 if the instance is among the positional arguments
        self._changes: List[Tuple[str, Change]] = []
        self._notes: Dict[str, Call] = {}
        self._tries: Dict[str, int] = {}

    def prepare(self) -> None:
        """Ask each override, in order, what to change before the call."""
        for patch in self._patch_site.overrides:
            patch.calls += 1
            self._tries[patch.name] = getattr(patch.observer, "tries", 0)
            guard.run(patch.name, self._ask, patch, "prepare")
            if self.over:
                return

    def raised(self, exc: BaseException) -> bool:
        """Tell whether an override deals with the exception of an attempt: it answers, or the original is to be called again.

        The exception of a signal handler ends the call, as does what is not an Exception.
        """
        if not issubclass(type(exc), Exception) or is_the_jobs(exc) or raised_by_handler(exc):
            return False
        return self._retry("rescue", exc)

    def returned(self, result: Any) -> None:
        """Take the result of an attempt, unless an override does not trust it."""
        self._result = result
        if not self._retry("settled", result):
            self.over = True

    def finish(self) -> Any:
        """Commit every change, the last one first, and return the result; a failing step stays listed so that rollback can reach it."""
        while self._changes:
            step = self._changes[-1][1].commit
            if step is not None:
                step()
            self._changes.pop()
        return self._result

    def rollback(self) -> None:
        """Roll back every change after a failure, the last one first; a fault of ours here does not replace the failure."""
        while self._changes:
            name, change = self._changes.pop()
            if change.rollback is not None:
                guard.attempt(name, change.rollback)

    def _retry(self, moment: str, outcome: Any) -> bool:
        """Ask each override that has a try left; the first change is made."""
        for patch in self._patch_site.overrides:
            if self._tries.get(patch.name, 0) > 0 and guard.run(patch.name, self._ask, patch, moment, outcome) is not None:
                self._tries[patch.name] -= 1
                return True
        return False

    def _ask(self, patch: Patch, moment: str, *outcome: Any) -> Optional[Change]:
        call = self._call(patch)
        change: Optional[Change] = getattr(patch.observer, moment)(call, *outcome)
        if change is not None:
            self._make(patch, call, change)
        return change

    def _call(self, patch: Patch) -> Call:
        """Return the call as an override sees it, with the changes of those before it and with its own note."""
        call = self._patch_site.call(patch, self._instance, self.args[self._leading :], dict(self.kwargs))
        call.note = self._notes[patch.name].note if patch.name in self._notes else None
        self._notes[patch.name] = call
        return call

    def _make(self, patch: Patch, call: Call, change: Change) -> None:
        """Record a change and make it. If it does not fit the call, or cannot be recorded, it is taken back."""
        try:
            args, kwargs = self._arguments(change.arguments) if change.arguments else (self.args, self.kwargs)
            record: Any = patch.observer
            record.record(call, change)
            self._changes.append((patch.name, change))
        except BaseException:
            for step in (change.revert, change.rollback):
                if step is not None:
                    guard.attempt(patch.name, step)
            raise
        self.args, self.kwargs = args, kwargs
        if change.answers:
            self.over, self._result = True, change.result

    def _arguments(self, wanted: Dict[str, Any]) -> Arguments:
        """Return the arguments with some of them replaced, each in the way it was passed. Raises TypeError if the original would not take them."""
        signature = self._patch_site.parameters.signature()
        if signature is None:
            raise TypeError("The original has no signature, and an argument cannot be found by its name.")
        rest = self.args[self._leading :]
        given = [self._instance, *rest] if self._patch_site.bound else list(rest)
        named = dict(self.kwargs)
        positions = {name: index for index, (name, parameter) in enumerate(signature.parameters.items()) if parameter.kind in _BY_POSITION}
        for name, value in wanted.items():
            if positions.get(name, len(given)) < len(given):
                given[positions[name]] = value
            else:
                named[name] = value
        signature.bind(*given, **named)
        return (*self.args[: self._leading], *(given[1:] if self._patch_site.bound else given)), named
