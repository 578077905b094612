"""Finds the accelerator of this host from device files, installed modules, tools and variables, and last from torch."""

import glob
import os
import shutil
from typing import List, NamedTuple, Optional

from ddp_probe.doctor.children import ChildAnswer
from ddp_probe.doctor.host import Host, packages_of
from ddp_probe.shared.accelerators import ACCELERATORS, Accelerator, by_device_type


class Signs(NamedTuple):
    """What shows that an accelerator is meant to be here."""

    files: List[str]  # Below /dev.
    module: str  # The vendor's module that Python would import.
    tool: str  # The path of the vendor's tool.
    variables: List[str]  # Visible-device variables that are set.


def signs(host: Host, kind: Accelerator) -> Signs:
    """Return the signs of one accelerator."""
    tool = shutil.which(kind.smi, path=host.environ.get("PATH", os.defpath)) if kind.smi else None
    variables = [name for name in kind.visible if name in host.environ]
    return Signs(device_files(host, kind), importable_module(host, kind), tool or "", variables)


def device_files(host: Host, kind: Accelerator) -> List[str]:
    """Return the device files below /dev, in the order of the cards."""
    files: List[str] = []
    for pattern in kind.device_files:
        files += glob.glob(os.path.join(glob.escape(host.dev), pattern))
    return sorted(set(files), key=lambda path: (len(path), path))


def importable_module(host: Host, kind: Accelerator) -> str:
    """Return the vendor's module that is installed; nothing is imported."""
    return next((name for name in kind.modules if packages_of(host).origin(name)), "")


def accelerator(host: Host) -> Optional[Accelerator]:
    """Return the requested accelerator, else the one with the strongest sign; None if there is no sign."""
    return host.once("accelerator", lambda: _accelerator(host))


def _accelerator(host: Host) -> Optional[Accelerator]:
    if host.request.device:
        return None if host.request.device == "cpu" else by_device_type(host.request.device)
    seen = signed(host)
    if seen is not None:
        return seen
    counted = host.ask("torch_facts").last.get("cards", {})
    return next((by_device_type(device) for device, number in counted.items() if number), None)


def signed(host: Host) -> Optional[Accelerator]:
    """Return the accelerator with the strongest sign, of those that torch is not needed for."""
    seen = [(kind, signs(host, kind)) for kind in ACCELERATORS if kind.name != "privateuseone"]
    for sign in ("files", "module", "tool"):
        for kind, seen_here in seen:
            if getattr(seen_here, sign):
                return kind
    return None


def begin(host: Host) -> None:
    """Start the children that import torch, which takes seconds, side by side."""
    asked = host.request.device
    kind = (None if asked == "cpu" else by_device_type(asked)) if asked else signed(host)
    module = importable_module(host, kind) if kind else ""
    for arguments in {(), (module,)} if module else {()}:  # DOC101 is about torch alone.
        host.begin("torch_facts", *arguments)
    host.begin("mmengine_facts", module)


def torch_facts(host: Host) -> ChildAnswer:
    """Return what torch says after the vendor's module was imported, if there is one."""
    kind = accelerator(host)
    module = importable_module(host, kind) if kind else ""
    return host.ask("torch_facts", module) if module else host.ask("torch_facts")


def count(host: Host) -> int:
    """Return how many cards torch counts."""
    kind = accelerator(host)
    counted = torch_facts(host).last.get("cards", {}) if kind else {}
    return int(counted.get(kind.torch_attribute, 0)) if kind else 0


def names() -> List[str]:
    """Return the device types that can be requested."""
    return ["cpu", *(device_type(kind) for kind in ACCELERATORS if kind.name != "privateuseone")]


def device_type(kind: Accelerator) -> str:
    """Return what torch calls the devices."""
    return kind.device_types[0] if kind.device_types else kind.name
