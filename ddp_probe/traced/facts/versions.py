"""Finds installed packages by folder names on sys.path, without importing or parsing metadata."""

import itertools
import os
import re
import sys
from typing import Any, Dict, Iterable, NamedTuple, Optional, Tuple

from ddp_probe.shared import accelerators
from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts.describe import namespace

_DISTRIBUTION = re.compile(r"^([A-Za-z0-9._-]+?)-([0-9][^-]*)(?:-.*)?\.(?:dist-info|egg-info)$")
_ENTRIES = 200  # of sys.path
_NAMES = 20_000  # of one folder; the first one may be a data folder
_PATH = 4096  # characters


class Installed(NamedTuple):
    """Importable top-level names and the first folder that has each, and versions by distribution with the folder of each."""

    modules: Dict[str, str]
    versions: Dict[str, str]
    folders: Dict[str, str]


_last: Tuple[Tuple[str, ...], Installed] = ((), Installed({}, {}, {}))


def _scan(folders: Iterable[str]) -> Installed:
    modules: Dict[str, str] = {}
    versions: Dict[str, str] = {}
    of: Dict[str, str] = {}
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
                of.setdefault(normal(match.group(1)), folder)
            elif name.endswith((".py", ".so", ".pyd")) or "." not in name:
                modules.setdefault(name.split(".", 1)[0], folder)
    return Installed(modules, versions, of)


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


def _text(value: Any, most: int = 100) -> str:
    return str.__str__(value)[:most] if issubclass(type(value), str) else ""  # torch's is a subclass of str


def _build() -> Dict[str, str]:
    """Return the properties of torch's build; torch.version contains only constants."""
    build = namespace("torch.version")
    texts = {"torch." + name: _text(build.get(name)) for name in ("cuda", "hip", "xpu")}
    texts["torch.git"] = _text(build.get("git_version"))
    texts["torch.debug"] = "True" if build.get("debug") is True else ""
    return {name: text for name, text in texts.items() if text}


def version_of(module: str) -> str:
    """Return the version of a module, imported or only installed; empty if that is unknown.

    It comes from one source whether this process has imported the module or not, as a wheel's name may lack the end of __version__ (+cu130):
    the name of the installed distribution, if the module lies beside it. A module from elsewhere (a clone, an editable installation) has
    only its __version__. So has torch, as every process that is recorded imports it.
    """
    held = namespace(module)
    text = _text(held.get("__version__"))
    if module == "torch" and text:
        return text
    distributions = installed()
    names = (normal(name) for name in (module, *PACKAGES.get(module, ()), *accelerators.distributions().get(module, ())))
    name = next((name for name in names if name in distributions.versions), "")
    if not name:
        return text
    return distributions.versions[name] if _lies_in(distributions.folders[name], module, held) else text


def _lies_in(folder: str, module: str, held: Dict[str, Any]) -> bool:
    """Tell whether a module is in a folder of sys.path, as a single file or as a package; one that is not imported, whether it would be."""
    if held:
        file = _text(held.get("__file__"), _PATH)
        return os.path.abspath(folder or ".") in (os.path.dirname(file), os.path.dirname(os.path.dirname(file)))
    first = installed().modules.get(module)
    return first == folder or (first is None and module in accelerators.modules())


def versions() -> Dict[str, str]:
    """Return module to version, for imported and installed modules."""
    texts = {"python": "%d.%d.%d" % sys.version_info[:3]}
    for module in (*accelerators.modules(), *PACKAGES):
        text = version_of(module)
        if text:
            texts[module] = text
    texts.update(_build())
    return texts


def at_least(module: str, *numbers: int) -> bool:
    """Return whether a module has this version or a newer one; False if its version is unknown or cannot be parsed."""
    match = re.match(r"\d+(?:\.\d+)*", version_of(module))
    return match is not None and tuple(int(part) for part in match.group(0).split(".")) >= numbers
