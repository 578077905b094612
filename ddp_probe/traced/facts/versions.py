"""Finds installed packages by folder names on sys.path, without importing or parsing metadata."""

import itertools
import os
import re
import sys
from typing import Any, Dict, FrozenSet, Iterable, NamedTuple, Optional, Set, Tuple

from ddp_probe.shared import accelerators
from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts.describe import namespace

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


# Finds the versions that a job uses: from imported modules, or from the folder names of others.

# Module -> names of its distribution if they differ.
PACKAGES: Dict[str, Tuple[str, ...]] = {
    "torch": (),
    "mmengine": ("mmengine-lite",),
    "mmcv": ("mmcv-full", "mmcv-lite"),
    "mmdet": (),
    "mmseg": ("mmsegmentation",),
    "mmpretrain": (),
    "numpy": (),
    "torchvision": (),
    "transformers": (),
    "accelerate": (),
    "lightning": (),
    "pytorch_lightning": (),
    "deepspeed": (),
    "ray": (),
    "wrapt": (),
    "msgspec": (),
    "cloudpickle": (),
}


def _text(value: Any) -> str:
    return str.__str__(value)[:100] if issubclass(type(value), str) else ""  # torch's is a subclass of str


def _build() -> Dict[str, str]:
    """Return the properties of torch's build; torch.version contains only constants."""
    build = namespace("torch.version")
    found = {"torch." + name: _text(build.get(name)) for name in ("cuda", "hip", "xpu")}
    found["torch.git"] = _text(build.get("git_version"))
    found["torch.debug"] = "True" if build.get("debug") is True else ""
    return {name: text for name, text in found.items() if text}


def version_of(module: str) -> str:
    """Return the version of a module, imported or only installed; empty if neither."""
    text = _text(namespace(module).get("__version__"))
    for name in (module, *PACKAGES.get(module, ()), *accelerators.distributions().get(module, ())):
        text = text or installed().versions.get(normal(name), "")
    return text


def versions() -> Dict[str, str]:
    """Return module to version, for imported and installed modules."""
    found = {"python": "%d.%d.%d" % sys.version_info[:3]}
    for module in (*accelerators.modules(), *PACKAGES):
        text = version_of(module)
        if text:
            found[module] = text
    found.update(_build())
    return found


def at_least(module: str, *numbers: int) -> bool:
    """Return whether a module has this version or a newer one; False if its version is unknown or cannot be parsed."""
    match = re.match(r"\d+(?:\.\d+)*", version_of(module))
    return match is not None and tuple(int(part) for part in match.group(0).split(".")) >= numbers
