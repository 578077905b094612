"""Finds the accelerators of this process, and mmengine's choice among them, from imported modules, /dev and the environment. None is initialised."""

import os
import re
import sys
from fnmatch import fnmatch
from types import FunctionType
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from ddp_probe.shared.accelerators import ACCELERATORS, Accelerator
from ddp_probe.shared.masks import masked
from ddp_probe.shared.ours import ours
from ddp_probe.shared.schema import Card
from ddp_probe.traced.facts.describe import contents, describe, namespace
from ddp_probe.traced.facts.versions import importable, version_of

_FILES = 16
_TEXT = 200

# torch always has these attributes, with or without a card; a plugin adds those of other vendors.
_IN_EVERY_TORCH = frozenset(("cuda", "xpu", "mps", "mtia"))


def accelerators(dev: str = "/dev") -> List[Card]:
    """Return the accelerators with any sign of presence, vendors' plugins before CUDA."""
    shim = shim_module()
    listed: Dict[str, List[str]] = {}
    cards = [(record, _card(record, dev, shim, listed)) for record in _records()]
    return [card for record, card in cards if _exists(record, card)]


def initialised_runtimes() -> List[Tuple[str, Dict[str, Any]]]:
    """Return the device type and the module's namespace of each accelerator that the program has initialised in this process."""
    runtimes: List[Tuple[str, Dict[str, Any]]] = []
    shim = shim_module()
    for record in _records():
        runtime = _runtime(record)
        held = contents(runtime) if runtime is not None else {}
        stands_in = bool(shim) and record.torch_attribute == "cuda"
        if not stands_in and all(held is not other for _, other in runtimes) and _initialised(held):
            module = next((name for name in record.modules if name in sys.modules), "")
            runtimes.append((_device_type(record, module), held))
    return runtimes


def _records() -> List[Accelerator]:
    """Return the table; privateuseone takes the name that a plugin chose for it, unless a record has that name."""
    named = _private_name()
    if not named or any(named in record.device_types for record in ACCELERATORS):
        return ACCELERATORS
    own = Accelerator(name=named, vendor="", device_types=(named,), torch_attribute=named)
    return [own if record.name == "privateuseone" else record for record in ACCELERATORS]


def _private_name() -> str:
    """Return the name that a plugin gave to torch's privateuseone; this reads one string in torch."""
    ask = namespace("torch._C").get("_get_privateuse1_backend_name")  # torch 2.0
    name = ask() if ask else ""
    return name if type(name) is str and name != "privateuseone" else ""


def _card(record: Accelerator, dev: str, shim: str, listed: Dict[str, List[str]]) -> Card:
    module = next((name for name in record.modules if name in sys.modules), "")
    files = _device_files(record, dev, listed)
    runtime = _runtime(record)
    device_type = _device_type(record, module)
    card = Card(name=record.name, device_type=device_type, module=module or _name_of(runtime))
    card.module_version = version_of(record.modules[0]) if record.modules else ""
    card.importable = any(importable(name) for name in record.modules) if record.modules else None
    card.device_files = files[:_FILES]
    card.count = len(files) if files and record.one_file_per_card else None
    variables = [name for name in record.visible if name in os.environ]
    card.visible = {name: masked(os.environ.get(name, ""), _TEXT) for name in variables}
    card.shim = shim if shim.split(".", 1)[0] in record.modules else ""
    _ask(card, runtime)
    return card


def _exists(record: Accelerator, card: Card) -> bool:
    ours = record.platform == sys.platform or card.initialised is True or bool(card.shim)
    plugin = bool(card.importable) or any(name in sys.modules for name in record.modules)
    hip = bool(namespace("torch.version").get("hip"))  # ROCm builds of torch call their cards cuda
    if record.name in ("cuda", "rocm") and card.initialised and not card.device_files and not card.visible:
        return hip == (record.name == "rocm")
    registered = record.torch_attribute not in _IN_EVERY_TORCH and record.torch_attribute in namespace("torch")
    return ours or plugin or registered or bool(card.device_files) or bool(card.visible)


def _device_type(record: Accelerator, module: str) -> str:
    """Return the first name, or the second if the plugin is present and torch has no attribute of the first."""
    if module and len(record.device_types) > 1 and record.torch_attribute not in namespace("torch"):
        return record.device_types[1]
    return record.device_types[0] if record.device_types else ""


def _device_files(record: Accelerator, dev: str, listed: Dict[str, List[str]]) -> List[str]:
    paths: List[str] = []
    for pattern in record.device_files:
        folder, wanted = os.path.join(dev, os.path.dirname(pattern)), os.path.basename(pattern)
        if folder not in listed:
            listed[folder] = _list(folder)
        begins = wanted.partition("[")[0].partition("*")[0].partition("?")[0]  # fnmatch compiles a pattern, and most of these cards are absent
        names = [name for name in listed[folder] if name.startswith(begins) and fnmatch(name, wanted)]
        paths += [os.path.join(folder, name) for name in names]
    return sorted(paths, key=lambda path: (len(path), path))


def _list(folder: str) -> List[str]:
    try:
        return os.listdir(folder)
    except ours(OSError):
        return []


def _runtime(record: Accelerator) -> Any:
    """Return the imported module that knows the current card: torch.<name>, else the vendor's own."""
    held = namespace("torch").get(record.torch_attribute) if record.torch_attribute else None
    if held is not None:
        return held
    return next((sys.modules[name] for name in record.modules if name in sys.modules), None)


def _name_of(runtime: Any) -> str:
    name = contents(runtime).get("__name__") if runtime is not None else ""
    return name if type(name) is str else ""


def _initialised(held: Dict[str, Any]) -> Optional[bool]:
    """Return whether the module is initialised in this process, from its own flag; None if it has no flag.

    torch.cuda.is_initialized() only reads two variables (1.12 to 2.13); the vendors' copies do the same.
    """
    if held.get("_initialized") is False:
        return False
    ask = held.get("is_initialized")
    if type(ask) is FunctionType:
        return ask() is True
    return True if held.get("_initialized") is True else None


def _ask(card: Card, runtime: Any) -> None:
    held = contents(runtime) if runtime is not None else {}
    try:
        card.initialised = _initialised(held)
        if card.initialised:
            card.current = _number(held.get("current_device"))
            card.count = _number(held.get("device_count"))
    except ours(Exception):
        return  # if a vendor's module fails here, the rest of the record is still valid


def _number(ask: Optional[Callable[[], Any]]) -> Optional[int]:
    answer = ask() if ask else None
    return answer if type(answer) is int else None


def shim_module() -> str:
    """Return the module that redirects torch.cuda to another accelerator, such as torch_gcu.transfer_to_gcu."""
    for name in list(sys.modules):
        if ".transfer_to_" in name and sys.modules.get(name) is not None:
            return name
    ask = namespace("torch.cuda").get("is_available")
    home = ask.__globals__.get("__name__") if type(ask) is FunctionType else None
    if type(home) is str and home.split(".", 1)[0] not in ("torch", "ddp_probe", "wrapt"):
        return home
    return ""


# Reports which device mmengine has chosen and why, from the flags that it set when imported.

_MODULE = "mmengine.device.utils"
_CHECK = re.compile(r"^is_([a-z]+)_available$")
_ORDER = ("npu", "cuda", "mlu", "mps", "dipu", "musa")  # of mmengine 0.10.7, which checks them in this order

# The accelerators that _init_dist_pytorch and _init_dist_slurm of mmengine 0.10.7 check before using torch.cuda.
_BRANCHES = {"pytorch": ("mlu", "npu", "musa"), "slurm": ("mlu",), "mpi": ()}


def _known(held: Dict[str, Any]) -> List[str]:
    names = [match.group(1) for match in map(_CHECK.match, held) if match]
    return sorted(names, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))


def _mmengine() -> str:
    return ("mmengine " + version_of("mmengine")).strip()


def _strangers(vendors: Iterable[str]) -> str:
    """Return a clause about the accelerators present that this mmengine does not know."""
    knows = set(vendors) | {record.name for record in ACCELERATORS if record.mmengine_knows}
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
    answer, names = held["DEVICE"], _known(held)
    answer = answer if type(answer) is str else describe(answer)
    return answer, _why(answer, held, names)


def _why(answer: str, held: Dict[str, Any], names: List[str]) -> str:
    known_devices = "%s knows %s%s." % (_mmengine(), ", ".join(names), _strangers(names))
    flag = "IS_%s_AVAILABLE" % answer.upper()
    if answer == "cpu":
        return known_devices + " None of those it knows was available when it was imported."
    if answer not in names or held.get(flag) is False:
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


# The public functions for the accelerators present and mmengine's choice among them. They initialise nothing.

__all__ = ["accelerators", "init_dist_branch", "mmengine_device", "shim_module"]
