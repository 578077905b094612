"""Tells what mmengine has decided about devices, and why, from the answers that it noted when it was imported."""

import re
from types import FunctionType
from typing import Any, Dict, Iterable, List, Tuple

from ddp_probe.accelerators import ACCELERATORS
from ddp_probe.facts._cards import accelerators, shim_module
from ddp_probe.facts.describe import describe
from ddp_probe.facts.loaded import namespace
from ddp_probe.facts.versions import version_of

_MODULE = "mmengine.device.utils"
_CHECK = re.compile(r"^is_([a-z]+)_available$")
_ORDER = ("npu", "cuda", "mlu", "mps", "dipu", "musa")  # of mmengine 0.10.7, which asks one after the other

# The accelerators that _init_dist_pytorch and _init_dist_slurm of mmengine 0.10.7 ask for before they take torch.cuda.
_BRANCHES = {"pytorch": ("mlu", "npu", "musa"), "slurm": ("mlu",), "mpi": ()}


def _known(held: Dict[str, Any]) -> List[str]:
    found = [match.group(1) for match in map(_CHECK.match, held) if match]
    return sorted(found, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))


def _mmengine() -> str:
    return ("mmengine " + version_of("mmengine")).strip()


def _strangers(known: Iterable[str]) -> str:
    """Return a clause on accelerators that are here and that this mmengine does not know."""
    knows = set(known) | {record.name for record in ACCELERATORS if record.mmengine_knows}
    names = [card.name for card in accelerators() if card.name not in knows]
    return "; %s is not among them" % ", ".join(names) if names else ""


def mmengine_device() -> Tuple[str, str]:
    """Return what mmengine.device.get_device() answers, and why."""
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
    told = "%s knows %s%s." % (_mmengine(), ", ".join(known), _strangers(known))
    flag = "IS_%s_AVAILABLE" % answer.upper()
    if answer == "cpu":
        return told + " None of those it knows was available when it was imported."
    if answer not in known or held.get(flag) is False:
        return told + " Something has set mmengine.device.utils.DEVICE to %s since." % answer
    if flag in held:
        return "%s is True." % flag
    shim = " through " + shim_module() if answer == "cuda" and shim_module() else ""
    return "torch's check for %s answered True%s when mmengine was imported." % (answer, shim)


def init_dist_branch(launcher: str = "pytorch") -> Tuple[str, str]:
    """Return whose set_device mmengine's init_dist calls for this launcher, and why; asked of the answers that it noted."""
    if launcher not in _BRANCHES:
        return "none", "init_dist knows no launcher %s." % describe(launcher)
    names, held = _BRANCHES[launcher], namespace(_MODULE)
    if not held:
        return "", "mmengine.device is not imported."
    asked = [name for name in names if "is_%s_available" % name in held]  # older mmengine has fewer branches
    for name in asked:
        flag, answer = "IS_%s_AVAILABLE" % name.upper(), held.get("IS_%s_AVAILABLE" % name.upper())
        if type(answer) is not bool:
            return "", "%s notes no %s; it asks only when init_dist is called." % (_mmengine(), flag)
        if answer:
            return name, "%s is True." % flag
    return "cuda", _why_cuda(launcher, asked)


def _why_cuda(launcher: str, asked: List[str]) -> str:
    flags = ", ".join("IS_%s_AVAILABLE" % name.upper() for name in asked)
    because = "%s: False" % flags if flags else "launcher %s asks for nothing else" % launcher
    return "%s; so init_dist calls torch.cuda.set_device before init_process_group, whatever the backend." % because
