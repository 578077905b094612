"""Collects a model's parameters and buffers in the order of torch's named_parameters, without calling a method of the model.

It reads the modules' namespaces, so it also works for a module that overrides named_parameters or __getattr__.
"""

from typing import Any, Dict, List, Set

from ddp_probe.facts.loaded import contents

_PARAMETERS = 500_000
_MODULES = 500_000


class Tensors:
    """Tensors and their names, each tensor once. Two lists, because one tuple per tensor would slow down the garbage collector."""

    def __init__(self) -> None:
        self.names: List[str] = []
        self.tensors: List[Any] = []
        self.shared = 0
        self._seen: Set[int] = set()

    def add(self, prefix: str, held: Dict[str, Any]) -> None:
        seen = self._seen
        for name, tensor in held.items():
            if tensor is None:
                continue
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
            members = held.get("_parameters")
            if members:
                self.parameters.add(prefix, members)
            members = held.get("_buffers")
            if members:
                self.buffers.add(prefix, members)
            members = held.get("_modules")
            if members:
                children = [(name, child) for name, child in members.items() if child is not None]
                prefixes += [prefix + name + "." for name, _ in reversed(children)]
                waiting += [child for _, child in reversed(children)]


def _names_below(module: Any) -> int:
    """Count the parameters of a module that occurs again."""
    met: Set[int] = set()
    waiting, count = [module], 0
    while waiting and len(met) < _MODULES:
        current = waiting.pop()
        if current is None or id(current) in met:
            continue
        met.add(id(current))
        held = contents(current)
        count += sum(1 for tensor in (held.get("_parameters") or {}).values() if tensor is not None)
        waiting += (held.get("_modules") or {}).values()
    return count
