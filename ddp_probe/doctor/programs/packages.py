"""Says which packages are installed, and from which file each would be imported; nothing is imported."""

import importlib.util
import os
from importlib import metadata
from typing import Dict, List, Tuple

from ddp_probe.doctor.programs._say import end_with_parent, say
from ddp_probe.shared.accelerators import modules

PACKAGES = ("torch", "mmengine", "mmcv", "mmdet", "mmseg", "mmcls", "mmpretrain", "accelerate", "lightning", "deepspeed", "transformers")


def main() -> None:
    """Look and answer."""
    say(origins={name: _origin(name) for name in (*PACKAGES, *modules())}, installed=_installed())


def _origin(name: str) -> str:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return ""
    return (spec.origin or next(iter(spec.submodule_search_locations or ()), "")) if spec else ""


def _installed() -> Dict[str, List[Tuple[str, str]]]:
    """Return version and folder of every distribution by name, in the order of the path."""
    copies: Dict[str, List[Tuple[str, str]]] = {}
    for distribution in metadata.distributions():
        name = (distribution.metadata["Name"] or "").lower().replace("_", "-")
        place = (distribution.version, os.path.realpath(str(distribution.locate_file(""))))
        if place not in copies.setdefault(name, []):
            copies[name].append(place)
    return copies


if __name__ == "__main__":
    end_with_parent()
    main()
