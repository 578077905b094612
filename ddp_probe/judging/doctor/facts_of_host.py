"""What hosts of one job have to have in common: versions, the driver, backends, cards, and the variables that decide how ranks talk."""

import sys
from typing import Any, Dict, Tuple

from ddp_probe.judging.doctor import cards, packages
from ddp_probe.judging.doctor.host import Host
from ddp_probe.judging.doctor.plan import plan
from ddp_probe.shared.accelerators import runtime_variables, visible_variables

_BEGINNINGS = ("NCCL_", "GLOO_", "UCX_", "FI_", "TORCH_", "OMP_")
_NAMES = ("PYTHONPATH", "LD_LIBRARY_PATH", "PYTHONHASHSEED", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_OWN_TO_A_HOST = ("SOCKET_IFNAME", "_IB_HCA", "_TOPO_FILE", "_NET_DEVICES", "_IFACE")
_PACKAGES = ("torch", "mmengine", "mmcv", "numpy")
_LONGEST = 200  # Characters of a variable.


def facts(host: Host) -> Dict[str, Any]:
    """Return the facts of this host."""
    told = cards.torch_facts(host).last
    known = cards.accelerator(host)
    versions = {name: packages.of(host).version(name) for name in _PACKAGES}
    return {
        "Python": "%d.%d.%d" % sys.version_info[:3],
        **versions,
        "torch": told.get("torch") or versions["torch"],
        "vendor module": ("%s %s" % (told.get("module", ""), told.get("module_version", ""))).strip(),
        "driver": _driver(host),
        "backends": ", ".join(told.get("backends", [])),
        "backend": plan(host).backend,
        "cards": "%d %s" % (cards.count(host), known.name) if known else "none",
        "environment": _environment(host),
    }


def _driver(host: Host) -> str:
    """Return the version of the kernel module."""
    known = cards.accelerator(host)
    names: Tuple[str, ...] = known.drivers if known else ()
    found = (host.read(host.sys, "module", name, "version").strip() for name in names if name)
    return next((each for each in found if each), "")


def _environment(host: Host) -> Dict[str, str]:
    beginnings = (*_BEGINNINGS, *runtime_variables())
    names = {*_NAMES, *visible_variables()}
    chosen = (name for name in host.environ if (name in names or name.startswith(beginnings)) and not name.endswith(_OWN_TO_A_HOST))
    return {name: host.environ[name][:_LONGEST] for name in sorted(chosen)}
