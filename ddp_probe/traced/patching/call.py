"""A call as its observers see it: the name that was patched, what was passed, and three moments; cheap to create, read only when somebody asks."""

import inspect
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ddp_probe.shared.ours import ours


class Switch:
    """On in the process that is watched; a forked child or a helper turns it off. That of the ledger is off after a fault of ours, too."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = True


switch = Switch()


# A target names a callable: the module that defines it, and the qualified name inside.


class Target(NamedTuple):
    """The name of a callable to patch."""

    module: str
    qualname: str

    def __str__(self) -> str:
        return "%s.%s" % (self.module, self.qualname)


# The parameters of an original; read from its signature when somebody first asks, then kept.


class Parameters:
    """The signature of an original, and whether its first parameter is an instance or a class."""

    __slots__ = ("bound", "original", "_read", "_signature")

    def __init__(self, original: Callable[..., Any], bound: bool) -> None:
        self.original = original
        self.bound = bound
        self._read = False
        self._signature: Optional[inspect.Signature] = None

    def signature(self) -> Optional[inspect.Signature]:
        """Return the signature, or None if the original has none that can be read."""
        if not self._read:
            try:
                self._signature = inspect.signature(self.original)
            except ours(ValueError, TypeError):
                self._signature = None
            self._read = True
        return self._signature


# One intercepted call, as an observer sees it: cheap to create, read only when somebody asks.


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
            bound = dict(signature.bind(*first, *self.args, **self.kwargs).arguments)
        except ours(TypeError):
            return {}
        if self._parameters.bound:
            self._drop_instance(signature, bound)
        return bound

    def _drop_instance(self, signature: inspect.Signature, bound: Dict[str, Any]) -> None:
        parameter = next(iter(signature.parameters.values()))
        if parameter.kind is not inspect.Parameter.VAR_POSITIONAL:
            del bound[parameter.name]
        elif len(bound[parameter.name]) > 1:
            bound[parameter.name] = bound[parameter.name][1:]
        else:
            del bound[parameter.name]

    def defaults(self) -> Dict[str, Any]:
        """Return the defaults of the signature by parameter name."""
        signature = self._parameters.signature()
        if signature is None:
            return {}
        return {name: p.default for name, p in signature.parameters.items() if p.default is not inspect.Parameter.empty}


# An observer is what a probe does around a call: three moments, each of them optional.


class Observer:
    """Callbacks around a patched call: `before` it, `after` it, or once it has `raised`. The guard runs them, and their return values are ignored."""

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

    def raised(self, call: Call, exc: BaseException) -> None:
        """Look at what the original raised; it reaches the job whatever happens here."""
