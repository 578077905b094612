"""Finds what declares itself: the class of each probe and of each remedy, and the module of each rule, by walking their folders."""

import importlib
import pkgutil
from pathlib import Path
from typing import Any, Iterator, List, Tuple

import ddp_probe

_PACKAGE = Path(ddp_probe.__file__).parent


def probes() -> List[Any]:
    """Return the class of every probe, by name."""
    return [module.PROBE for _, module in files("traced/probes") if hasattr(module, "PROBE")]


def remedies() -> List[Any]:
    """Return the class of every remedy, in the order in which they are applied."""
    found = [module.REMEDY for _, module in files("traced/remedies") if hasattr(module, "REMEDY")]
    return sorted(found, key=lambda remedy: (remedy.order, remedy.word))


def files(folder: str) -> Iterator[Tuple[str, Any]]:
    """Yield the path and the module of every public file in a folder of the package, such as judging/rules."""
    for found in sorted(pkgutil.iter_modules([str(_PACKAGE / folder)]), key=lambda found: found.name):
        if not found.ispkg and not found.name.startswith("_"):
            name = "ddp_probe.%s.%s" % (folder.replace("/", "."), found.name)
            yield name.replace(".", "/") + ".py", importlib.import_module(name)
