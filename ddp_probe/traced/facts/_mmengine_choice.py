"""Reports which device mmengine has chosen and why, from the flags that it set when imported."""

import re
from types import FunctionType
from typing import Any, Dict, Iterable, List, Tuple

from ddp_probe.shared.accelerators import ACCELERATORS
from ddp_probe.traced.facts._cards import accelerators, shim_module
from ddp_probe.traced.facts.describe import describe
from ddp_probe.traced.facts.loaded import namespace
from ddp_probe.traced.facts.versions import version_of

_MODULE = "mmengine.device.utils"
_CHECK = re.compile(r"^is_([a-z]+)_available$")
_ORDER = ("npu", "cuda", "mlu", "mps", "dipu", "musa")  # of mmengine 0.10.7, which checks them in this order

# The accelerators that _init_dist_pytorch and _init_dist_slurm of mmengine 0.10.7 check before using torch.cuda.
_BRANCHES = {"pytorch": ("mlu", "npu", "musa"), "slurm": ("mlu",), "mpi": ()}


def _known(held: Dict[str, Any]) -> List[str]:
    found = [match.group(1) for match in map(_CHECK.match, held) if match]
    return sorted(found, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))


def _mmengine() -> str:
    return ("mmengine " + version_of("mmengine")).strip()


def _strangers(known: Iterable[str]) -> str:
    """Return a clause about the accelerators present that this mmengine does not know."""
    knows = set(known) | {record.name for record in ACCELERATORS if record.mmengine_knows}
    names = [card.name for card in accelerators() if card.name not in knows]
    return "; %s is not among them" % ", ".join(names) if names else ""


def mmengine_device() -> Tuple[str, str]:
    """Return the result of mmengine.device.get_device(), and its reason."""
    held = namespace(_MODULE)
    if "DEVICE" not in held:
        return "", "mmengine.device is not imported."
    ask = held.get("get_device")
    if type(ask) is not FunctionType or ask.__globals__ is not held:
        return "", "get_device has been replaced by %s." % describe(ask)
    answer, known = held["DEVICE"], _known(held)
    answer = answer if type(answer) is str else describe(answer)
    return answer, _why(answer, held, known)


def _why(answer: str, held: Dict[str, Any], known: List[str]) -> str:
    known_devices = "%s knows %s%s." % (_mmengine(), ", ".join(known), _strangers(known))
    flag = "IS_%s_AVAILABLE" % answer.upper()
    if answer == "cpu":
        return known_devices + " None of those it knows was available when it was imported."
    if answer not in known or held.get(flag) is False:
        return known_devices + " mmengine.device.utils.DEVICE was later set to %s." % answer
    if flag in held:
        return "%s is True." % flag
    shim = " through " + shim_module() if answer == "cuda" and shim_module() else ""
    return "torch's check for %s answered True%s when mmengine was imported." % (answer, shim)


def init_dist_branch(launcher: str = "pytorch") -> Tuple[str, str]:
    """Return whose set_device mmengine's init_dist will call for this launcher, and why, from the flags that it set."""
    if launcher not in _BRANCHES:
        return "none", "init_dist does not know the launcher %s." % describe(launcher)
    names, held = _BRANCHES[launcher], namespace(_MODULE)
    if not held:
        return "", "mmengine.device is not imported."
    checked = [name for name in names if "is_%s_available" % name in held]  # older mmengine has fewer branches
    for name in checked:
        flag, answer = "IS_%s_AVAILABLE" % name.upper(), held.get("IS_%s_AVAILABLE" % name.upper())
        if type(answer) is not bool:
            return "", "%s has no %s; it checks only when init_dist is called." % (_mmengine(), flag)
        if answer:
            return name, "%s is True." % flag
    return "cuda", _why_cuda(launcher, checked)


def _why_cuda(launcher: str, checked: List[str]) -> str:
    flags = ", ".join("IS_%s_AVAILABLE" % name.upper() for name in checked)
    because = "%s: False" % flags if flags else "launcher %s checks nothing else" % launcher
    return "%s; so init_dist calls torch.cuda.set_device before init_process_group, whatever the backend." % because
