"""Each package is there once, and the installed one is the one that is imported."""

import os
import shlex
import sys
from typing import Iterator, List, Tuple

from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import KNOWN_PACKAGES, Host, Packages, packages_of
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import listed, quoted

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
        return CHECK.fail(joined([saw for saw, _ in problems]), joined([remedy for _, remedy in problems]))
    there = [name for name in KNOWN_PACKAGES if packages.origin(name)]
    if not there:
        return CHECK.ok(say("None of {packages} is installed.", packages=listed(KNOWN_PACKAGES)))
    return CHECK.ok(say("{packages}: each is installed once, and none is shadowed.", packages=listed(there)))


def _problems(packages: Packages) -> Iterator[Tuple[Text, Text]]:
    """Yield what is wrong with a sentence that cures it."""
    for name in KNOWN_PACKAGES:
        places = packages.places(name)
        if len(places) > 1:
            shown = [say("{version} in {folder}", version=version, folder=quoted(folder)) for version, folder in places]
            times = say(
                "{package} is installed {count} times: {places}.",
                package=name,
                count=len(places),
                places=listed(shown),
            )
            yield times, _keep_one(name, places)
    both = [name for name in _FULL if packages.places(name)]
    if len(both) > 1:
        command = "%s -m pip uninstall -y %s" % (shlex.quote(sys.executable), " ".join(both))
        yield (
            say("{packages} are both installed, and both bring the module mmcv.", packages=listed(both, by=" and ")),
            say("Keep one: {command}, then install the wanted one again.", command=quoted(command)),
        )
    for name in KNOWN_PACKAGES:
        yield from _shadowed(name, packages)


def _keep_one(name: str, places: List[Tuple[str, str]]) -> Text:
    others = []
    for version, folder in places[1:]:
        package, metadata = "%s/%s" % (folder, name), "%s/%s-%s.dist-info" % (folder, name, version)
        others.append(say("{package} and {metadata}", package=quoted(package), metadata=quoted(metadata)))
    version, folder = places[0]
    return say(
        "Python imports {version} in {folder}. Remove the other: {others}; or remove its folder from PYTHONPATH.",
        version=version,
        folder=quoted(folder),
        others=listed(others, by="; "),
    )


def _shadowed(name: str, packages: Packages) -> Iterator[Tuple[Text, Text]]:
    """Yield it if the module does not come from the folder of its distribution; an editable installation has no package there."""
    origin, places = packages.origin(name), packages.places(name)
    if not origin or len(places) != 1:
        return
    folder = os.path.realpath(os.path.dirname(os.path.dirname(origin)))
    if folder != places[0][1] and os.path.isdir(os.path.join(places[0][1], name)):
        version, installed_in = places[0]
        yield (
            say(
                "'import {package}' takes {found}, not {package} {version} in {folder}.",
                package=name,
                found=quoted(os.path.dirname(origin)),
                version=version,
                folder=quoted(installed_in),
            ),
            say(
                "Start the job from a folder other than {folder}, or remove that folder from PYTHONPATH; "
                "or uninstall the other copy if this one is meant.",
                folder=quoted(folder),
            ),
        )
