"""What programs need of torch and of a vendor's module to work on a card."""

import importlib
from typing import Any


def plugin(module: str) -> Any:
    """Return the vendor's module, which gives torch its cards; None if torch needs none."""
    return importlib.import_module(module) if module else None


def runtime_of(torch: Any, plugin: Any, attribute: str) -> Any:
    """Return what has set_device and device_count: torch.NAME, or the vendor's module if this torch has no such attribute; None for the CPU."""
    runtime = getattr(torch, attribute, None) if attribute else None
    return plugin if runtime is None and attribute and hasattr(plugin, "device_count") else runtime


def device(torch: Any, types: str, index: int) -> Any:
    """Return a device of the first of these types (`gcu,xla`) that this torch knows."""
    if types == "cpu":
        return torch.device("cpu")
    for kind in types.split(","):
        try:
            return torch.device("%s:%d" % (kind, index))
        except RuntimeError:  # torch 1.12 knows no type that a plugin names
            continue
    raise RuntimeError("torch %s does not know the device type %s" % (torch.__version__, types.replace(",", " or ")))


def set_device(runtime: Any, index: int) -> None:
    """Make a card the current one of this process, if its runtime has a current one."""
    if hasattr(runtime, "set_device"):
        runtime.set_device(index)


def identity(runtime: Any, index: int) -> str:
    """Return what identifies a card on this host: its UUID or its bus id; empty if the runtime does not say."""
    try:
        properties = runtime.get_device_properties(index)
    except Exception:
        return ""
    if getattr(properties, "uuid", None):
        return str(properties.uuid)
    bus: Any = [getattr(properties, name, None) for name in ("pci_domain_id", "pci_bus_id", "pci_device_id")]
    return "" if None in bus else "%04x:%02x:%02x" % tuple(bus)
