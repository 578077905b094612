"""Waits on sys.meta_path for named modules and calls back once each has been executed.

wrapt's own import hooks cannot be unregistered, fire on half-built modules and let a fault of theirs break the
user's import; this watcher leaves no trace on the module, swallows its own faults and can be cancelled.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Callable, Iterable, Optional, Sequence, Set

    Fire = Callable[[str, ModuleType], None]


class ImportHook:
    """A finder that finds nothing itself: it passes on what the others find and listens to the loading."""

    def __init__(self, names: Iterable[str], fire: Fire) -> None:
        self.waiting: Set[str] = set(names)
        self._fire = fire
        self._asking: Set[str] = set()

    def start(self) -> None:
        """Begin to listen."""
        if self.waiting and self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def cancel(self) -> None:
        """Stop listening; what is still waited for stays unpatched."""
        self.waiting.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None) -> Optional[ModuleSpec]:
        """Let the other finders find the module; listen to its loader where it is one that is waited for."""
        if name not in self.waiting or name in self._asking:
            return None
        self._asking.add(name)
        try:
            spec = self._ask_others(name, path, target)
        finally:
            self._asking.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            listening: Any = _Listening(spec.loader, self)
            spec.loader = listening
        return spec

    def _ask_others(self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType]) -> Optional[ModuleSpec]:
        for finder in list(sys.meta_path):
            find: Any = getattr(finder, "find_spec", None)
            if finder is self or find is None:  # a finder of the old kind has its turn after us
                continue
            spec: Optional[ModuleSpec] = find(name, path, target)
            if spec is not None:
                return spec
        return None

    def executed(self, module: ModuleType) -> None:
        """Tell that the module has been executed; called by the loader that listens."""
        name = module.__name__
        if name in self.waiting:
            self._fire(name, sys.modules.get(name, module))


class _Listening:
    """Stands for a module's loader until the module has been executed, then takes itself out of the module."""

    def __init__(self, loader: Any, watcher: ImportHook) -> None:
        self._loader = loader
        self._import_hook = watcher

    def __getattr__(self, name: str) -> Any:
        if name in ("_loader", "_import_hook"):  # asked for before __init__, as copy does
            raise AttributeError(name)
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        """Create the module as its own loader does."""
        create = getattr(self._loader, "create_module", None)
        module: Optional[ModuleType] = create(spec) if create is not None else None
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module with its own loader in place, then tell the watcher."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._import_hook.executed(module)
