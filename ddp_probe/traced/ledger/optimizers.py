"""When the step of an optimizer is watched: once there is an optimizer of its class. A job has one or two of torch's fifteen classes.

torch wraps the step of a class, and marks it as `hooked`, when the first optimizer of this class is made or unpickled. The method that does so is
watched. An optimizer from before that time is known by the mark.
"""

from types import FunctionType
from typing import Any, Callable, Dict, List, Optional

from ddp_probe.shared.ours import must_pass, ours
from ddp_probe.shared.overflow import FRAGILE, forgotten
from ddp_probe.traced.ledger.calls import broken
from ddp_probe.traced.patching import Switch, Target
from ddp_probe.traced.patching.code_swap import Hooks
from ddp_probe.traced.patching.slot import class_order, is_class, locate

_METHODS = ("_patch_step_function", "_hook_for_profile")
"""The method, from torch 2.0 on and before."""
_attributes, _derived = type.__dict__["__dict__"].__get__, type.__subclasses__  # A metaclass may answer for them.


def makers() -> List[Target]:
    """Return what torch calls for each optimizer that is made or unpickled; the installed torch has one of them."""
    return [Target("torch.optim.optimizer", "Optimizer." + name) for name in _METHODS]


class OptimizerSteps:
    """The steps that wait for an optimizer of their class."""

    def __init__(self, switch: Switch, take: Callable[[Target], bool]) -> None:
        self._switch = switch
        self._take = take
        self._waiting: Dict[int, Target] = {}  # By id() of the class, which torch keeps.

    def hooks(self) -> Hooks:
        """Return what is called around the method that torch calls for each optimizer."""
        switch = self._switch

        def begin(optimizer: Any) -> Optional[type]:
            return type(optimizer) if switch.on else None

        def end(cls: Optional[type], _: Any) -> None:
            if cls is None or not switch.on:
                return
            try:
                self._made(cls)
            except RecursionError as exc:
                try:
                    passes = must_pass(exc)
                except RecursionError:
                    passes = FRAGILE and not forgotten()
                if passes:
                    raise
            except ours(Exception) as exc:
                broken(switch, exc)

        def error(_: Any) -> None:
            """There was no step to watch."""

        return Hooks(begin, end, error)

    def wait_for(self, target: Target) -> None:
        """Watch this step as soon as there is an optimizer of its class, or of one derived from it."""
        found = locate(Target(target.module, target.qualname.rpartition(".")[0]))
        if isinstance(found, str) or not is_class(found[1]):
            return
        cls = found[1]
        self._waiting[id(cls)] = target  # Before the look: another thread may make its first optimizer in between.
        if _has_been_made(cls):
            self._claim(id(cls), target)

    def _made(self, cls: type) -> None:
        """Watch what an optimizer of this class may run as its step: what it inherits, and what it calls by super()."""
        for base in class_order(cls):
            target = self._waiting.get(id(base))
            if target is not None:
                self._claim(id(base), target)

    def _claim(self, key: int, target: Target) -> None:
        """Watch a step that waits, unless another thread is about to; if it cannot be done now, it waits on."""
        try:
            if self._waiting.pop(key, None) is not None and not self._take(target):
                self._waiting[key] = target
        except BaseException:
            self._waiting[key] = target
            raise


def _has_been_made(cls: type) -> bool:
    """Tell whether torch has marked the step of this class, or of one derived from it. Somebody's own step may stand there as well."""
    classes = [cls]
    for one in classes:
        classes += _derived(one)
        step = _attributes(one).get("step")
        if step is not None and (type(step) is not FunctionType or "hooked" in vars(step)):
            return True
    return False
