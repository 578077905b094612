"""One intercepted call, as an observer sees it: cheap to create, read only when somebody asks."""

import inspect
from typing import Any, Callable, Dict, List, Tuple

from ddp_probe.shared.ours import ours

from .parameters import Parameters
from .target import Target


class Call:
    """The target, what was passed, and a note of the observer's own. Nothing in it is passed on to the original."""

    __slots__ = ("target", "label", "overridable", "instance", "args", "kwargs", "note", "_parameters")

    def __init__(
        self, parameters: Parameters, target: Target, label: str, overridable: bool, instance: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]
    ) -> None:
        self.target = target  # The name that the observer was applied to.
        self.label = label  # The same as text.
        self.overridable = overridable  # An override is here and may change the call.
        self.instance = instance
        self.args = args
        self.kwargs = kwargs
        self.note: Any = None
        self._parameters = parameters

    @property
    def wrapped(self) -> Callable[..., Any]:
        """The original, unbound."""
        return self._parameters.original

    def arguments(self) -> Dict[str, Any]:
        """Return what was passed, by parameter name, without defaults and instance. Empty if the call does not fit the signature."""
        signature = self._parameters.signature()
        if signature is None:
            return {}
        first: List[Any] = [self.instance] if self._parameters.bound else []
        try:
            found = dict(signature.bind(*first, *self.args, **self.kwargs).arguments)
        except ours(TypeError):
            return {}
        if self._parameters.bound:
            self._drop_instance(signature, found)
        return found

    def _drop_instance(self, signature: inspect.Signature, found: Dict[str, Any]) -> None:
        parameter = next(iter(signature.parameters.values()))
        if parameter.kind is not inspect.Parameter.VAR_POSITIONAL:
            del found[parameter.name]
        elif len(found[parameter.name]) > 1:
            found[parameter.name] = found[parameter.name][1:]
        else:
            del found[parameter.name]

    def defaults(self) -> Dict[str, Any]:
        """Return the defaults of the signature by parameter name."""
        signature = self._parameters.signature()
        if signature is None:
            return {}
        return {name: p.default for name, p in signature.parameters.items() if p.default is not inspect.Parameter.empty}
