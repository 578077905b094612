"""Each package is there once, and the installed one is the one that is imported."""

import importlib.util
import os
import sys
from importlib import metadata
from typing import Dict, Iterator, List, Tuple

from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host

CHECK = Check(
    id="DOC102",
    slug="one-copy",
    title="Each package is installed once, and the installed copy is the one that is imported.",
    looks_at="The metadata of all distributions on the path, and the folder that each package would be imported from.",
    remedy="Uninstall the copies that are not wanted, and start the job from a folder without a package of that name.",
)
_PACKAGES = ("torch", "mmengine", "mmcv", "mmdet", "mmseg", "mmcls", "mmpretrain", "accelerate", "lightning", "deepspeed", "transformers")
_FULL = ("mmcv", "mmcv-full", "mmcv-lite")  # All bring the module mmcv.


def check(_: Host) -> Answer:
    """Compare what is installed with what would be imported."""
    found = list(problems())
    if found:
        return CHECK.fail(" ".join(saw for saw, _ in found), " ".join(remedy for _, remedy in found))
    return CHECK.ok("No package of %s is there twice, and none is shadowed." % ", ".join(name for name in _PACKAGES if _spec(name)))


def problems() -> Iterator[Tuple[str, str]]:
    """Yield what is wrong with a sentence that cures it."""
    installed = _installed()
    for name, places in sorted(installed.items()):
        if name in _PACKAGES and len(places) > 1:
            shown = ", ".join("%s in %s" % (version, folder) for version, folder in places)
            yield "%s is installed %d times: %s." % (name, len(places), shown), _keep_one(name, places)
    both = [name for name in _FULL if name in installed]
    if len(both) > 1:
        yield (
            "%s are both installed, and both bring the module mmcv." % " and ".join(both),
            "Keep one: %s -m pip uninstall -y %s, then install the wanted one again." % (sys.executable, " ".join(both)),
        )
    for name in _PACKAGES:
        yield from _shadowed(name, installed.get(name, []))


def _keep_one(name: str, places: "List[Tuple[str, str]]") -> str:
    kept = places[0]
    others = ["%s/%s and %s/%s-%s.dist-info" % (folder, name, folder, name, version) for version, folder in places[1:]]
    return "Python imports %s in %s. Remove the other: %s; or take its folder off PYTHONPATH." % (kept[0], kept[1], "; ".join(others))


def _installed() -> Dict[str, List[Tuple[str, str]]]:
    """Return version and folder of every distribution by name, in the order of the path."""
    found: Dict[str, List[Tuple[str, str]]] = {}
    for one in metadata.distributions():
        name = (one.metadata["Name"] or "").lower().replace("_", "-")
        place = (one.version, os.path.realpath(str(one.locate_file(""))))
        if place not in found.setdefault(name, []):
            found[name].append(place)
    return found


def _shadowed(name: str, places: "List[Tuple[str, str]]") -> Iterator[Tuple[str, str]]:
    """Yield it if the module does not come from a folder of its distribution."""
    origin = _spec(name)
    if not origin or not places or len(places) > 1:
        return
    folder = os.path.realpath(os.path.dirname(os.path.dirname(origin)))
    if folder != places[0][1] and _is_installed_as_files(name, places[0][1]):
        yield (
            "'import %s' takes %s, not %s %s in %s." % (name, os.path.dirname(origin), name, *places[0]),
            "Start the job from another folder than %s, or take that folder off PYTHONPATH; or uninstall the other copy if this source tree is meant."
            % folder,
        )


def _is_installed_as_files(name: str, folder: str) -> bool:
    """Tell it from an editable installation, whose folder holds no package."""
    return os.path.isdir(os.path.join(folder, name))


def _spec(name: str) -> str:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return ""
    return (spec.origin or "") if spec else ""
