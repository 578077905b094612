"""A call that a remedy may change; the file's name makes warnings pass over it, as over the wrapper's own frame.

Each mend is asked in its order. One that fails is counted by the guard, and the call goes on as it stands.
"""

import inspect
from typing import Any, Callable, Dict, List, Optional, Tuple

from ddp_probe.ours import ours, raised_by_handler
from ddp_probe.patching.call import Call
from ddp_probe.patching.guard import guard
from ddp_probe.patching.override import Change, Override

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class _Plan:
    """The call as it is to be made, and what has to follow it."""

    def __init__(self, wrapper: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        self.patch_site = wrapper._self_patch_site
        split: Tuple[Any, Tuple[Any, ...]] = wrapper._self_split(args) if self.patch_site.bound else (None, args)
        self.instance, self.args = split
        self.first = args[: len(args) - len(self.args)]  # the instance, where the original has to be given it
        self.kwargs = kwargs
        self.changes: List[Tuple[str, Change]] = []
        self._notes: Dict[str, Call] = {}

    def call(self, patch: Any) -> Call:
        """Return the call as a mend sees it, with what those before it have changed, and with the mend's own note."""
        call = Call(self.patch_site, patch, self.instance, self.args, dict(self.kwargs))
        call.note = self._notes[patch.name].note if patch.name in self._notes else None
        self._notes[patch.name] = call
        return call

    def take(self, name: str, change: Change) -> None:
        """Put other arguments in the place of those that were passed, each where it was passed."""
        if change.arguments:
            self.args, self.kwargs = self._with(change.arguments)
        self.changes.append((name, change))

    def _with(self, wanted: Dict[str, Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """Return the arguments with some of them changed; a call that could not be made so is a fault of the mend."""
        signature: Optional[inspect.Signature] = self.patch_site.names.signature()
        if signature is None:
            raise TypeError("The original has no signature, and an argument cannot be found by its name.")
        given = [self.instance, *self.args] if self.patch_site.bound else list(self.args)
        named = dict(self.kwargs)
        slots = {name: slot for slot, (name, parameter) in enumerate(signature.parameters.items()) if parameter.kind in _BY_PLACE}
        for name, value in wanted.items():
            if slots.get(name, len(given)) < len(given):
                given[slots[name]] = value
            else:
                named[name] = value
        signature.bind(*given, **named)
        return tuple(given[1:] if self.patch_site.bound else given), named


def overridden(wrapper: Any, wrapped: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """Make the call as the mends of its seat want it."""
    plan = _Plan(wrapper, args, kwargs)
    try:
        result = _made(plan, wrapped)
        _done(plan)
    except BaseException:
        _left(plan)
        raise
    return result


def _made(plan: _Plan, wrapped: Callable[..., Any]) -> Any:
    """Call the original until no mend wants it called again."""
    for patch in plan.patch_site.overrides:
        patch.calls += 1
        change = guard.run(patch.name, _taken, plan, patch, "prepare")
        if change is not None and change.instead:
            return change.result
    left = {patch.name: patch.observer.tries for patch in plan.patch_site.overrides}
    while True:
        try:
            result = wrapped(*plan.first, *plan.args, **plan.kwargs)
        except ours(Exception) as exc:
            # A signal handler's exception ends the call, and no remedy calls it again.
            change = None if raised_by_handler(exc) else _asked(plan, left, "rescue", exc)
            if change is None:
                raise
        else:
            change = _asked(plan, left, "settled", result)
            if change is None:
                return result
        if change.instead:
            return change.result


def _taken(plan: _Plan, patch: Any, moment: str, *outcome: Any) -> Optional[Change]:
    override: Override = patch.observer
    change: Optional[Change] = getattr(override, moment)(plan.call(patch), *outcome)
    if change is None:
        return None
    try:
        plan.take(patch.name, change)
    except BaseException:
        if change.left is not None:
            change.left()
        raise
    return change


def _asked(plan: _Plan, left: Dict[str, int], moment: str, outcome: Any) -> Optional[Change]:
    """Ask each mend that has a try left whether the call is to be made again."""
    for patch in plan.patch_site.overrides:
        if left[patch.name] > 0:
            change: Optional[Change] = guard.run(patch.name, _taken, plan, patch, moment, outcome)
            if change is not None:
                left[patch.name] -= 1
                return change
    return None


def _done(plan: _Plan) -> None:
    """Run what has to follow a call that went well, the last change first; one that fails is still there to be left."""
    while plan.changes:
        step = plan.changes[-1][1].done
        if step is not None:
            step()
        plan.changes.pop()


def _left(plan: _Plan) -> None:
    """Run what has to follow a failure, the last change first; a fault of ours in it does not take the place of the failure."""
    while plan.changes:
        name, change = plan.changes.pop()
        if change.left is not None:
            guard.attempt(name, change.left)
