"""There is space where checkpoints and logs go."""

import os
import tempfile
from typing import Dict

from ddp_probe.activation import run_folder
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, quoted, size

CHECK = Check(
    id="DOC303",
    slug="disk-space",
    title="There is free space in the folders for checkpoints, logs and temporary files.",
    looks_at="The free space and free inodes of this folder, of the folder of runs, and of the folder for temporary files.",
    remedy="Free some space, or start the job from a folder on another disk.",
)
_LEAST = 1 << 30
_INODES = 1000


def check(host: Host) -> Answer:
    """Ask the file system of each folder."""
    folders: Dict[str, Text] = {}
    for name, path in (
        (say("this folder"), os.getcwd()),
        (say("the folder of runs"), run_folder.root(host.environ)),
        (say("temporary files"), tempfile.gettempdir()),
    ):
        folders.setdefault(_there(path), name)
    full, low, shown = [], [], []
    for path, name in folders.items():
        usage = os.statvfs(path)
        if not usage.f_blocks:  # /proc and its like hold no files of anybody.
            continue
        free = usage.f_frsize * usage.f_bavail
        shown.append(say("{folder} ({path}): {size} free", folder=name, path=quoted(path), size=size(free)))
        if free < _LEAST or (usage.f_files > 0 and usage.f_favail < _INODES):
            full.append(path)
            low.append(
                say(
                    "{folder} ({path}) has {size} and {inodes} inodes free",
                    folder=name,
                    path=quoted(path),
                    size=size(free),
                    inodes=usage.f_favail,
                )
            )
    if not low:
        return CHECK.ok(say("{folders}.", folders=listed(shown, by="; ")))
    return CHECK.warn(
        say("{folders}.", folders=listed(low, by="; ")),
        say(
            "Free some space in {path}, or start the job from a folder on another disk.",
            path=quoted(full[0]),
        ),
    )


def _there(path: str) -> str:
    """Return the folder, or the lowest one above it that exists."""
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path
