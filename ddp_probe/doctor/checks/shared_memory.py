"""Shared memory is large enough for DataLoader workers."""

import os

from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted, size

CHECK = Check(
    id="DOC301",
    slug="shared-memory",
    title="Shared memory (/dev/shm) is large enough for DataLoader workers and for backends that communicate through it.",
    looks_at="The size and the free space of /dev/shm.",
    remedy="Start the container with --shm-size=8g or --ipc=host.",
)
_LEAST = 256 << 20  # Docker gives 64 MiB, with which a DataLoader of images dies by SIGBUS.


def check(host: Host) -> Answer:
    """Ask the file system."""
    path = os.path.join(host.dev, "shm")
    try:
        usage = os.statvfs(path)
    except OSError as exc:
        return CHECK.fail(
            say("{path} cannot be used: {error}.", path=path, error=quoted(exc.strerror)),
            say("Mount it: mount -t tmpfs -o size=8g tmpfs {path}", path=path),
        )
    there, free = usage.f_frsize * usage.f_blocks, usage.f_frsize * usage.f_bavail
    saw = say("{path} has {size}, {free} free.", path=path, size=size(there), free=size(free))
    if not os.access(path, os.W_OK):
        return CHECK.fail(
            say("This user cannot write to {path}.", path=path),
            say("Mount it so that everybody can write: mount -o remount,mode=1777 {path}", path=path),
        )
    if there < _LEAST:
        remedy = say(
            "Start the container with --shm-size=8g or --ipc=host; or, as root: mount -o remount,size=8g {path}",
            path=path,
        )
        return CHECK.fail(saw, remedy)
    if free < _LEAST:
        remedy = say(
            "Remove what other jobs have left there: ls -lt {path}. Or enlarge it: mount -o remount,size=8g {path}",
            path=path,
        )
        return CHECK.fail(saw, remedy)
    return CHECK.ok(saw)
