"""There is space where checkpoints and logs go."""

import os
import tempfile
from typing import Dict

from ddp_probe.activation import run_folder
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.checks.shared_memory import in_bytes
from ddp_probe.judging.doctor.host import Host

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
    folders: Dict[str, str] = {}
    for name, path in (
        ("this folder", os.getcwd()),
        ("the folder of runs", run_folder.root(host.environ)),
        ("temporary files", tempfile.gettempdir()),
    ):
        folders.setdefault(_there(path), name)
    low, shown = [], []
    for path, name in folders.items():
        usage = os.statvfs(path)
        if not usage.f_blocks:  # /proc and its like hold no files of anybody.
            continue
        free = usage.f_frsize * usage.f_bavail
        shown.append("%s (%s): %s free" % (name, path, in_bytes(free)))
        if free < _LEAST or (usage.f_files > 0 and usage.f_favail < _INODES):
            low.append((path, name, "%s (%s) has %s and %d inodes free" % (name, path, in_bytes(free), usage.f_favail)))
    if not low:
        return CHECK.ok("; ".join(shown) + ".")
    return CHECK.warn(
        "%s." % "; ".join(said for _, _, said in low), "Free some space in %s, or start the job from a folder on another disk." % low[0][0]
    )


def _there(path: str) -> str:
    """Return the folder, or the lowest one above it that exists."""
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path
