"""What the lifecycle puts in place: a finder that waits for modules, and in a child that may become a rank a function for init_process_group."""

from __future__ import annotations

import gc
import sys

from ddp_probe.shared.ours import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Callable, Iterable, Optional, Sequence, Set

    Fire = Callable[[str, ModuleType], None]
    from types import ModuleType
    from typing import Callable, Dict


def without_collections(step: Callable[[], None]) -> None:
    """Do this with automatic collection off. `import torch` alone would be met with one full collection more, a twentieth of what it takes."""
    if not gc.isenabled():
        step()
        return
    try:  # Before it is off: a signal handler of the job's may raise at any moment.
        gc.disable()
        step()
    finally:
        gc.enable()


# Waits on sys.meta_path for named modules and calls back once each has been executed.
#
# wrapt's import hooks cannot be unregistered, fire on half-built modules and let a fault of theirs break the
# user's import; this watcher leaves no trace on the module, swallows its own faults and can be cancelled.


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
        """Let the other finders find the module; listen to its loader if that module is waited for."""
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


# Promoted: a helper that became a rank by calling init_process_group, as under mp.spawn, notebook launchers, Ray and Lightning's spawn.
#
# Until then a plain function replaces init_process_group, so that a DataLoader worker loads only this file of the probe.

_NAME = "init_process_group"
_undo: Dict[str, Callable[[], None]] = {}


def stand_in(module: ModuleType, promote: Callable[[Dict[str, Any]], None], late: bool = False) -> None:
    """Put a function in place of init_process_group that promotes this process, steps aside and passes the call on.

    late: the module was imported before, as in the fork of a process that was not armed, and others have taken the function from it.
    """
    original = getattr(module, _NAME, None)
    if original is None or _NAME in _undo:
        return

    import functools  # An interpreter may start without it.

    @functools.wraps(original)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        step_aside()
        promote(_named(original, args, kwargs))
        return getattr(module, _NAME)(*args, **kwargs)

    _undo[_NAME] = lambda: _exchange(init_process_group, original)
    if late:
        _exchange(original, init_process_group)
    setattr(module, _NAME, init_process_group)


def _exchange(old: Any, new: Any) -> None:
    """Replace this function by another in each module that has it."""
    for holder in list(sys.modules.values()):
        names = getattr(holder, "__dict__", None)
        if type(names) is dict and names.get(_NAME) is old:
            names[_NAME] = new


def _named(function: Any, args: Any, kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """Return the arguments by name; their order is not the same in every torch."""
    import inspect

    try:
        return dict(inspect.signature(function).bind_partial(*args, **kwargs).arguments)
    except ours(TypeError, ValueError):  # the call itself will say so
        return kwargs


def step_aside() -> None:
    """Put the original back wherever the stand-in is."""
    put_back = _undo.pop(_NAME, None)
    if put_back is not None:
        put_back()
