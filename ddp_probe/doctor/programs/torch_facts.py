"""Says what torch is, after importing it and, if one is named, a vendor's module."""

import importlib
import sys
from typing import Any, Dict, List

from ddp_probe.doctor.programs._device import runtime_of
from ddp_probe.doctor.programs._say import end_with_parent, say
from ddp_probe.shared.accelerators import ACCELERATORS, Accelerator


def main(module: str = "") -> None:
    """Import and answer."""
    torch: Any = importlib.import_module("torch")
    answer: Dict[str, Any] = {"torch": str(torch.__version__), "file": str(torch.__file__), "built": _built(torch)}
    say(**answer)
    plugin: Any = None
    if module:
        plugin = importlib.import_module(module)
        answer.update(module=module, module_version=str(getattr(plugin, "__version__", "")), module_file=str(getattr(plugin, "__file__", "")))
    answer["distributed"] = bool(torch.distributed.is_available())
    answer["backends"] = _backends(torch) if answer["distributed"] else []
    answer["cards"] = {}
    for kind in ACCELERATORS:
        answer["cards"].update(_cards(torch, kind, plugin if module in kind.modules else None))
    say(**answer)


def _built(torch: Any) -> Dict[str, str]:
    """Return for which runtimes torch was compiled."""
    versions = {name: getattr(torch.version, name, None) for name in ("cuda", "hip", "xpu")}
    return {name: str(version) for name, version in versions.items() if version}


def _backends(torch: Any) -> List[str]:
    dist = torch.distributed
    built = [name for name in ("gloo", "nccl", "mpi", "ucc", "xccl") if getattr(dist, "is_%s_available" % name, lambda: False)()]
    if "gloo" not in built and not hasattr(dist, "is_gloo_available") and hasattr(dist, "ProcessGroupGloo"):  # torch 1.12 has no question for it
        built.append("gloo")
    registered = [name.lower() for name in getattr(dist.Backend, "_plugins", {})]
    return sorted({*built, *registered})


def _cards(torch: Any, kind: Accelerator, plugin: Any) -> "List[tuple[str, int]]":
    """Return how many cards torch counts; a runtime that cannot say counts none."""
    runtime = runtime_of(torch, plugin, kind.torch_attribute)
    if runtime is None or kind.torch_attribute == "mps":
        return []
    try:
        return [(kind.torch_attribute, int(runtime.device_count()))]
    except Exception:
        return [(kind.torch_attribute, 0)]


if __name__ == "__main__":
    end_with_parent()
    main(*sys.argv[1:])
