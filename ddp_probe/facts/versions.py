"""Tells which versions a job runs on: what is imported says so itself, what is not by the name of its folder."""

import re
import sys
from typing import Any, Dict, Tuple

from ddp_probe import accelerators
from ddp_probe.facts.installed import installed, normal
from ddp_probe.facts.loaded import namespace

# Module -> names of the distribution where they differ from the module's.
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
    """Return what torch's own build says of itself; torch.version holds nothing but constants."""
    build = namespace("torch.version")
    told = {"torch." + name: _text(build.get(name)) for name in ("cuda", "hip", "xpu")}
    told["torch.git"] = _text(build.get("git_version"))
    told["torch.debug"] = "True" if build.get("debug") is True else ""
    return {name: text for name, text in told.items() if text}


def version_of(module: str) -> str:
    """Return the version of one module, imported or only installed; empty where it is neither."""
    text = _text(namespace(module).get("__version__"))
    for name in (module, *PACKAGES.get(module, ()), *accelerators.distributions().get(module, ())):
        text = text or installed().versions.get(normal(name), "")
    return text


def versions() -> Dict[str, str]:
    """Return module to version, as far as imported or installed."""
    found = {"python": "%d.%d.%d" % sys.version_info[:3]}
    for module in (*accelerators.modules(), *PACKAGES):
        text = version_of(module)
        if text:
            found[module] = text
    found.update(_build())
    return found


def at_least(module: str, *numbers: int) -> bool:
    """Tell whether a module is of this version or newer; False where its version is unknown or reads otherwise."""
    match = re.match(r"\d+(?:\.\d+)*", version_of(module))
    return match is not None and tuple(int(part) for part in match.group(0).split(".")) >= numbers
