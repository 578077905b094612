"""This user may open the device files."""

import os

from ddp_probe.judging.doctor import cards
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host

CHECK = Check(
    id="DOC202",
    slug="device-files-open",
    title="This user may open the device files.",
    looks_at="The permissions of the accelerator's files below /dev; none is opened.",
    remedy="Add the user to the group that owns the files, then log in again.",
)


def check(host: Host) -> Answer:
    """Ask the kernel about each file."""
    known = cards.accelerator(host)
    files = cards.device_files(host, known) if known else []
    if not files:
        return CHECK.skipped("There is no device file of an accelerator.")
    closed = [path for path in files if not os.access(path, os.R_OK | os.W_OK)]
    if not closed:
        return CHECK.ok("%d of %d can be read and written: %s." % (len(files), len(files), ", ".join(files[:8])))
    group = _group(closed[0])
    return CHECK.fail(
        "%d of %d cannot be read and written by this user: %s." % (len(closed), len(files), ", ".join(closed[:8])),
        "Add the user to the group %s: usermod -aG %s $USER, then log in again. In a container, give it the group: --group-add %s."
        % (group, group, group),
    )


def _group(path: str) -> str:
    import grp

    number = os.stat(path).st_gid
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
