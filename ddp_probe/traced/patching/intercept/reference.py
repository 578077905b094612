"""Pickles a wrapper as the name of its original, so that unpickling does not need this package."""

import importlib
import operator
import sys
from typing import Any, Callable, Optional, Tuple

from ddp_probe.traced.patching.slot import MISSING, class_attribute, is_class, namespace
from ddp_probe.traced.patching.target import Target


class _Module:
    """Pickles as an import of the module it names."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[str]]:
        return importlib.import_module, (self.name,)


def reference(target: Target) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
    """Return the reduction that imports the module and walks down to the name."""
    return operator.attrgetter(target.qualname), (_Module(target.module),)


def lookup(found: Any) -> Optional[str]:
    """Return the qualified name under which pickle itself finds this very object, or None."""
    module, name = getattr(found, "__module__", None), getattr(found, "__qualname__", None)
    if type(module) is not str or type(name) is not str:
        return None
    space = namespace(sys.modules.get(module)) or {}
    first, *rest = name.split(".")
    reached = space.get(first, MISSING)
    for part in rest:
        reached = class_attribute(reached, part)[0] if is_class(reached) else MISSING
    if type(reached) is staticmethod:
        reached = reached.__func__
    return name if reached is found else None
