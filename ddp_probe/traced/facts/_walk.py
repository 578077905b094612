"""Collects a model's parameters and buffers in the order of torch's named_parameters, without calling a method of the model.

It reads the modules' namespaces, so it also works for a module that overrides named_parameters or __getattr__.
"""

from collections import OrderedDict
from typing import Any, Dict, Iterable, List, Set, Tuple

from ddp_probe.traced.facts._classes import class_name
from ddp_probe.traced.facts.loaded import contents

_PARAMETERS = 500_000
_MODULES = 500_000


class Tensors:
    """Tensors and their names, each tensor once. Two lists, because one tuple per tensor would slow down the garbage collector."""

    def __init__(self) -> None:
        self.names: List[str] = []
        self.tensors: List[Any] = []
        self.shared = 0
        self._seen: Set[int] = set()

    def add(self, prefix: str, members: Iterable[Tuple[str, Any]]) -> None:
        seen = self._seen
        for name, tensor in members:
            if id(tensor) in seen:
                self.shared += 1
                continue
            seen.add(id(tensor))
            self.names.append(prefix + name)
            self.tensors.append(tensor)


class Walk:
    """One walk over the modules, in the order of named_parameters."""

    def __init__(self, module: Any) -> None:
        self.parameters = Tensors()
        self.buffers = Tensors()
        self.truncated = False
        self._met: Set[int] = set()
        self._walk(module)

    def _walk(self, module: Any) -> None:
        prefixes, waiting, met = [""], [module], self._met
        while waiting:
            prefix, module = prefixes.pop(), waiting.pop()
            if id(module) in met:
                self.parameters.shared += _names_below(module)
                continue
            met.add(id(module))
            if len(self.parameters.names) >= _PARAMETERS or len(met) > _MODULES:
                self.truncated = True
                return
            held = contents(module)
            self.parameters.add(prefix, _members(held, "_parameters"))
            self.buffers.add(prefix, _members(held, "_buffers"))
            children = _members(held, "_modules")
            prefixes += [prefix + name + "." for name, _ in reversed(children)]
            waiting += [child for _, child in reversed(children)]


def _members(held: Dict[str, Any], of: str) -> List[Tuple[str, Any]]:
    """Return names and values, read past what a class of the job makes of a dict or a name."""
    found: Any = held.get(of)
    kind = type(found)
    if kind is dict or kind is OrderedDict or class_name(kind).startswith("torch.jit."):
        items = found.items()
    elif issubclass(kind, dict):
        items = dict.items(found)
    else:
        return []
    return [(name if type(name) is str else _plain(name), value) for name, value in items if value is not None]


def _plain(name: Any) -> str:
    return str.__str__(name) if issubclass(type(name), str) else "?"


def _names_below(module: Any) -> int:
    """Count the parameters of a module that occurs again."""
    met: Set[int] = set()
    waiting, count = [module], 0
    while waiting and len(met) < _MODULES:
        current = waiting.pop()
        if id(current) in met:
            continue
        met.add(id(current))
        held = contents(current)
        count += len(_members(held, "_parameters"))
        waiting += [child for _, child in _members(held, "_modules")]
    return count
