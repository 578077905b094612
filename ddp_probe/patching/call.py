"""One intercepted call, as a watch sees it: cheap to create, read only where somebody asks."""

import inspect
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

from ddp_probe.ours import ours

from .target import Target

if TYPE_CHECKING:
    from .patch import Patch, PatchSite


class Names:
    """What the parameters of an original are called; read from its signature at the first question, then kept."""

    __slots__ = ("_original", "_read", "_signature")

    def __init__(self, original: Callable[..., Any]) -> None:
        self._original = original
        self._read = False
        self._signature: Optional[inspect.Signature] = None

    def signature(self) -> Optional[inspect.Signature]:
        """Return the signature, or None where the original has none to read."""
        if not self._read:
            try:
                self._signature = inspect.signature(self._original)
            except ours(ValueError, TypeError):
                self._signature = None
            self._read = True
        return self._signature


class Call:
    """The target, what was passed, and a note that is the watch's own. Nothing in it is passed on to the original."""

    __slots__ = ("instance", "args", "kwargs", "note", "patch_site", "patch")

    def __init__(self, patch_site: "PatchSite", patch: "Patch", instance: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        self.patch_site = patch_site
        self.patch = patch
        self.instance = instance
        self.args = args
        self.kwargs = kwargs
        self.note: Any = None

    @property
    def target(self) -> Target:
        """The name that the watch was applied to."""
        return self.patch.target

    @property
    def wrapped(self) -> Callable[..., Any]:
        """The original, unbound."""
        return self.patch_site.original

    def arguments(self) -> Dict[str, Any]:
        """Return what was passed, by parameter name; no defaults, no instance. Empty where the call does not fit the signature."""
        signature = self.patch_site.names.signature()
        if signature is None:
            return {}
        first: List[Any] = [self.instance] if self.patch_site.bound else []
        try:
            found = dict(signature.bind(*first, *self.args, **self.kwargs).arguments)
        except ours(TypeError):
            return {}
        if self.patch_site.bound:
            self._forget_instance(signature, found)
        return found

    def _forget_instance(self, signature: inspect.Signature, found: Dict[str, Any]) -> None:
        parameter = next(iter(signature.parameters.values()))
        if parameter.kind is not inspect.Parameter.VAR_POSITIONAL:
            del found[parameter.name]
        elif len(found[parameter.name]) > 1:
            found[parameter.name] = found[parameter.name][1:]
        else:
            del found[parameter.name]

    def defaults(self) -> Dict[str, Any]:
        """Return the defaults of the signature by parameter name."""
        signature = self.patch_site.names.signature()
        if signature is None:
            return {}
        return {name: p.default for name, p in signature.parameters.items() if p.default is not inspect.Parameter.empty}
