"""Finds the versions that a job uses: from imported modules, or from the folder names of others."""

import re
import sys
from typing import Any, Dict, Tuple

from ddp_probe.shared import accelerators
from ddp_probe.traced.facts.installed import installed, normal
from ddp_probe.traced.facts.loaded import namespace

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
