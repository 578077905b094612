"""The clock of this host agrees with that of the file system."""

import os
import tempfile
import time

from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import moment

CHECK = Check(
    id="DOC304",
    slug="clock",
    title="The clock of this host is right, and agrees with that of the file system.",
    looks_at="The time stamp of a file written to this folder now, and those of this package's files.",
    remedy="Let the host synchronise its clock (chrony or ntpd), then check again.",
)
_APART = 5.0  # Seconds; a file server answers late, and the clocks of a cluster are milliseconds apart.


def check(_: Host) -> Answer:
    """Write a file, and compare."""
    now = time.time()
    if now < os.path.getmtime(__file__) - _APART:
        saw = say("The clock says {time}, which is before this package was installed.", time=moment(now))
        return CHECK.fail(saw)
    try:
        with tempfile.TemporaryFile(dir=os.getcwd()) as file:
            before = time.time()
            file.write(b"x")
            file.flush()
            written, after = os.fstat(file.fileno()).st_mtime, time.time()
    except OSError:
        return CHECK.ok(say("The clock says {time}.", time=moment(now)))
    apart = max(before - written, written - after)
    if apart > _APART:
        return CHECK.warn(
            say(
                "A file written now gets a time that is {seconds:.0f} s away from this host's clock: the file server's clock differs.",
                seconds=apart,
            )
        )
    return CHECK.ok(say("The clock says {time}, and the file system agrees.", time=moment(now)))
