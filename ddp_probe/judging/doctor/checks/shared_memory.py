"""Shared memory is large enough for DataLoader workers."""

import os

from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host

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
        return CHECK.fail("%s cannot be used: %s." % (path, exc.strerror), "Mount it: mount -t tmpfs -o size=8g tmpfs %s" % path)
    size, free = usage.f_frsize * usage.f_blocks, usage.f_frsize * usage.f_bavail
    said = "%s has %s, %s free." % (path, in_bytes(size), in_bytes(free))
    if not os.access(path, os.W_OK):
        return CHECK.fail("This user cannot write to %s." % path, "Mount it so that everybody can write: mount -o remount,mode=1777 %s" % path)
    if size < _LEAST:
        return CHECK.fail(said, "Start the container with --shm-size=8g or --ipc=host; or, as root: mount -o remount,size=8g %s" % path)
    if free < _LEAST:
        return CHECK.fail(said, "Remove what other jobs have left there: ls -lt %s. Or enlarge it: mount -o remount,size=8g %s" % (path, path))
    return CHECK.ok(said)


def in_bytes(number: int) -> str:
    """Return a number of bytes in the largest unit that it fills."""
    for unit, factor in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= factor:
            return "%.1f %s" % (number / factor, unit)
    return "%d bytes" % number
