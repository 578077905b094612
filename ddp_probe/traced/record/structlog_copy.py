"""The probe's copy of structlog, apart from the job's: another set of modules, under another name, from where structlog is installed.

structlog.dev decides once, when it is imported, whether rich formats exceptions, and importing rich is half of what structlog costs. In the copy
rich is not found; the job's structlog is imported by the job, with rich, configured by nobody but the job. Only the modules of the copy see an
``__import__`` of ours, so no other thread notices. docs/contributing/decisions/0035 has the figures.
"""

import builtins
import importlib
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any, Dict, Optional, Sequence

from ddp_probe.activation.own_imports import installed

_PUBLIC = "structlog"
NAME = "ddp_probe.traced.record.structlog"
"""What the copy is called in sys.modules; there is no file of that name."""

_LEFT_OUT = ("rich", "colorama", "better_exceptions", "greenlet", "twisted", "zope")
"""What structlog uses if it is there, and its chain here does not."""


_IF_ASKED = ("asyncio",)
"""What only structlog's asynchronous methods use; half of the price on a torch that does not load it itself."""


class _IfAsked(ModuleType):
    """Stands in the copy for a module that is imported when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def copy() -> Any:
    """Return the copy, loading it first."""
    return sys.modules.get(NAME) or _load(NAME)


def _import(name: str, given: Any = None, local: Any = None, wanted: Optional[Sequence[str]] = (), level: int = 0) -> Any:
    """Import as ``import`` does, with the copy in the place of structlog, and without what is left out."""
    top = name.partition(".")[0]
    if level:
        base = given["__package__"].rsplit(".", level - 1)[0]
        return _members(_load("%s.%s" % (base, name) if name else base), wanted)
    if top == _PUBLIC:
        module = _load(NAME + name[len(_PUBLIC) :])
        return _members(module, wanted) if wanted else copy()
    if name in _IF_ASKED and name not in sys.modules:
        return _IfAsked(name)
    if top in _LEFT_OUT:
        raise ModuleNotFoundError("No module named %r" % name, name=name)
    return builtins.__import__(name, given, local, wanted or (), 0)


def _members(module: ModuleType, wanted: Optional[Sequence[str]]) -> ModuleType:
    """Load what ``from module import name`` names, if it is a module."""
    for name in wanted or ():
        if not hasattr(module, name) and hasattr(module, "__path__"):
            spec = importlib.machinery.PathFinder.find_spec("%s.%s" % (module.__name__, name), module.__path__)
            if spec is not None:
                _load("%s.%s" % (module.__name__, name))
    return module


def _load(name: str) -> ModuleType:
    """Return a module of the copy."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        return loaded
    above, _, last = name.rpartition(".")
    parent = None if name == NAME else _load(above)
    spec = _found(name, parent)
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__builtins__"] = _BUILTINS
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)  # type: ignore[union-attr]  # _found refuses a spec without a loader
    except BaseException:
        sys.modules.pop(name, None)
        raise
    if parent is not None:
        setattr(parent, last, module)
    return module


def _found(name: str, parent: Optional[ModuleType]) -> importlib.machinery.ModuleSpec:
    public = _PUBLIC + name[len(NAME) :]
    if parent is not None:
        spec = importlib.machinery.PathFinder.find_spec(name, parent.__path__)
    else:
        there = installed(_PUBLIC)
        folders = list(there.submodule_search_locations or ()) if there is not None else []
        spec = importlib.util.spec_from_file_location(name, there.origin, submodule_search_locations=folders) if there is not None else None
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError("No module named %r" % public, name=public)
    return spec


_BUILTINS: Dict[str, Any] = {**vars(builtins), "__import__": _import}
