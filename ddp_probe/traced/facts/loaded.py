"""Reads modules that the program has imported itself, without calling their __getattr__ and without importing anything."""

import sys
from typing import Any, Dict

from ddp_probe.shared.ours import ours


def contents(holder: Any) -> Dict[str, Any]:
    """Return an object's own namespace; empty if it has none that is safe to read."""
    try:
        found = object.__getattribute__(holder, "__dict__")
    except ours(Exception):
        return {}
    return found if type(found) is dict else {}


def namespace(module: str) -> Dict[str, Any]:
    """Return the namespace of a module in sys.modules; empty if the program has not imported it."""
    held = sys.modules.get(module)
    return {} if held is None else contents(held)
