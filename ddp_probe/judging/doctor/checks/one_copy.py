"""Each package is there once, and the installed one is the one that is imported."""

import os
import shlex
import sys
from typing import Iterator, List, Tuple

from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import KNOWN_PACKAGES, Host, Packages, packages_of

CHECK = Check(
    id="DOC102",
    slug="one-copy",
    title="Each package is installed once, and the installed copy is the one that is imported.",
    looks_at="The metadata of all distributions on the path, and the folder that each package would be imported from.",
    remedy="Uninstall the copies that you do not want, and start the job from a folder without a package of that name.",
)
_FULL = ("mmcv", "mmcv-full", "mmcv-lite")  # All bring the module mmcv.


def check(host: Host) -> Answer:
    """Compare what is installed with what would be imported."""
    packages = packages_of(host)
    problems = list(_problems(packages))
    if problems:
        return CHECK.fail(" ".join(saw for saw, _ in problems), " ".join(remedy for _, remedy in problems))
    there = ", ".join(name for name in KNOWN_PACKAGES if packages.origin(name))
    return CHECK.ok("%s: each is installed once, and none is shadowed." % there if there else "None of %s is installed." % ", ".join(KNOWN_PACKAGES))


def _problems(packages: Packages) -> Iterator[Tuple[str, str]]:
    """Yield what is wrong with a sentence that cures it."""
    for name in KNOWN_PACKAGES:
        places = packages.places(name)
        if len(places) > 1:
            shown = ", ".join("%s in %s" % place for place in places)
            yield "%s is installed %d times: %s." % (name, len(places), shown), _keep_one(name, places)
    both = [name for name in _FULL if packages.places(name)]
    if len(both) > 1:
        yield (
            "%s are both installed, and both bring the module mmcv." % " and ".join(both),
            "Keep one: %s -m pip uninstall -y %s, then install the wanted one again." % (shlex.quote(sys.executable), " ".join(both)),
        )
    for name in KNOWN_PACKAGES:
        yield from _shadowed(name, packages)


def _keep_one(name: str, places: List[Tuple[str, str]]) -> str:
    others = ["%s/%s and %s/%s-%s.dist-info" % (folder, name, folder, name, version) for version, folder in places[1:]]
    return "Python imports %s in %s. Remove the other: %s; or remove its folder from PYTHONPATH." % (*places[0], "; ".join(others))


def _shadowed(name: str, packages: Packages) -> Iterator[Tuple[str, str]]:
    """Yield it if the module does not come from the folder of its distribution; an editable installation has no package there."""
    origin, places = packages.origin(name), packages.places(name)
    if not origin or len(places) != 1:
        return
    folder = os.path.realpath(os.path.dirname(os.path.dirname(origin)))
    if folder != places[0][1] and os.path.isdir(os.path.join(places[0][1], name)):
        yield (
            "'import %s' takes %s, not %s %s in %s." % (name, os.path.dirname(origin), name, *places[0]),
            "Start the job from a folder other than %s, or remove that folder from PYTHONPATH; or uninstall the other copy if this one is meant."
            % folder,
        )
