"""Finds installed packages by folder names on sys.path, without importing or parsing metadata."""

import itertools
import os
import re
import sys
from typing import Dict, FrozenSet, Iterable, NamedTuple, Optional, Set, Tuple

from ddp_probe.shared.ours import ours

_DISTRIBUTION = re.compile(r"^([A-Za-z0-9._-]+?)-([0-9][^-]*)(?:-.*)?\.(?:dist-info|egg-info)$")
_ENTRIES = 200  # of sys.path
_NAMES = 20_000  # of one folder; the first one may be a data folder


class Installed(NamedTuple):
    """Importable top-level names, and versions by distribution."""

    modules: FrozenSet[str]
    versions: Dict[str, str]


_last: Tuple[Tuple[str, ...], Installed] = ((), Installed(frozenset(), {}))


def _scan(folders: Iterable[str]) -> Installed:
    modules: Set[str] = set()
    versions: Dict[str, str] = {}
    for folder in folders:
        try:
            with os.scandir(folder or ".") as entries:
                names = [entry.name for entry in itertools.islice(entries, _NAMES)]
        except ours(OSError):
            continue
        for name in names:
            match = _DISTRIBUTION.match(name) if name.endswith("-info") else None
            if match:
                versions.setdefault(normal(match.group(1)), match.group(2))
            elif name.endswith((".py", ".so", ".pyd")) or "." not in name:
                modules.add(name.split(".", 1)[0])
    return Installed(frozenset(modules), versions)


def normal(name: str) -> str:
    """Normalise a distribution's name: torch-gcu, torch_gcu and Torch.GCU are the same."""
    return re.sub(r"[-_.]+", "_", name).lower()


def installed(path: Optional[Iterable[str]] = None) -> Installed:
    """Return the contents of the folders of sys.path, read once per sys.path."""
    global _last
    folders = tuple(entry for entry in list(sys.path if path is None else path)[:_ENTRIES] if type(entry) is str)
    if folders != _last[0]:
        _last = (folders, _scan(folders))
    return _last[1]


def importable(module: str) -> bool:
    """Return whether a top-level module is on sys.path, without locating or importing it."""
    return module.split(".", 1)[0] in installed().modules
