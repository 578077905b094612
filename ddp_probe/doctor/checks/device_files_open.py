"""This user may open the device files."""

import os

from ddp_probe.doctor import cards
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import listed, quoted

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
        return CHECK.skipped(say("There is no device file of an accelerator."))
    closed = [path for path in files if not os.access(path, os.R_OK | os.W_OK)]
    if not closed:
        return CHECK.ok(
            say(
                "{count} of {all} can be read and written: {files}.",
                count=len(files),
                all=len(files),
                files=listed([quoted(path) for path in files[:8]]),
            )
        )
    return CHECK.fail(
        say(
            "{count} of {all} cannot be read and written by this user: {files}.",
            count=len(closed),
            all=len(files),
            files=listed([quoted(path) for path in closed[:8]]),
        ),
        say(
            "Add the user to the group {group}: usermod -aG {group} $USER, then log in again. In a container, give it the group: "
            "--group-add {group}.",
            group=_group(closed[0]),
        ),
    )


def _group(path: str) -> str:
    import grp

    number = os.stat(path).st_gid
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
