"""The checks, one file each; walking the package is what lists them. Ids and slugs never change."""

import importlib
import os
from functools import lru_cache
from typing import Any, Dict, Tuple

HUNDREDS: Dict[str, str] = {
    "DOC1": "Python packages",
    "DOC2": "accelerators and backends",
    "DOC3": "this host",
    "DOC4": "the environment of the launch",
    "DOC5": "the probe itself",
    "DOC6": "ranks that start and compute",
    "DOC7": "the launch command",
    "DOC8": "several hosts",
}


@lru_cache(maxsize=1)
def modules() -> Tuple[Any, ...]:
    """Return the modules of all checks, by id."""
    names = [file[:-3] for file in os.listdir(__path__[0]) if file.endswith(".py") and not file.startswith("_")]
    return tuple(sorted((importlib.import_module("%s.%s" % (__name__, name)) for name in names), key=lambda module: str(module.CHECK.id)))


def static() -> Tuple[Any, ...]:
    """Return the modules of the checks that use no card, start no rank and need no other host."""
    return tuple(module for module in modules() if not module.CHECK.live and not module.CHECK.of_hosts)
