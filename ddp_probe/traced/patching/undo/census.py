"""The census of sys.modules: who else holds an original, and who holds a wrapper of ours."""

import sys
from typing import Any, Dict, Iterator, List, Set, Tuple

from ddp_probe.shared.ours import ours
from ddp_probe.traced.patching.slot import Slot, namespace

_TRIES = 5


def snapshot(mapping: Dict[Any, Any]) -> List[Tuple[Any, Any]]:
    """Return the items of a dictionary that another thread may be changing."""
    for _ in range(_TRIES):
        try:
            return list(mapping.items())
        except ours(RuntimeError):  # It changed size while it was read.
            continue
    return []


def spaces() -> Iterator[Tuple[str, Any, Dict[str, Any]]]:
    """Yield name, module and dictionary, each module once, without lazy modules and whatever else is in sys.modules."""
    seen: Set[int] = set()
    for name, module in snapshot(sys.modules):
        space = namespace(module)
        if space is not None and id(space) not in seen:
            seen.add(id(space))
            yield str(name), module, space


def holders(wanted: Dict[int, Any]) -> Iterator[Tuple[Slot, Any]]:
    """Yield every module attribute that is one of these objects, given by id, in one pass over all modules."""
    for name, module, space in spaces():
        for attribute, value in _found(space, wanted):
            yield Slot(module, attribute, True, "%s.%s" % (name, attribute)), value


def _found(space: Dict[str, Any], wanted: Dict[int, Any]) -> List[Tuple[str, Any]]:
    for _ in range(_TRIES):
        try:
            return [(name, value) for name, value in space.items() if id(value) in wanted]
        except ours(RuntimeError):  # It changed size while it was read.
            continue
    return []
