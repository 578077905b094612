"""The driver of the cards is loaded."""

import os

from ddp_probe.judging.doctor import cards
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host

CHECK = Check(
    id="DOC204",
    slug="driver-loaded",
    title="The kernel's driver of the cards is loaded.",
    looks_at="/sys/module, and what the driver reports there or in /proc/driver.",
    remedy="Load the driver on the host, outside any container.",
)


def check(host: Host) -> Answer:
    """Look for the driver's folder."""
    known = cards.accelerator(host)
    if known is None or not known.drivers:
        return CHECK.skipped("No accelerator is detected." if known is None else "The name of the driver of %s is not known." % known.name)
    for name in known.drivers:
        if os.path.isdir(os.path.join(host.sys, "module", name)):
            version = host.read(host.sys, "module", name, "version").strip()
            return CHECK.ok("The driver %s%s is loaded." % (name, " " + version if version else ""))
    if not cards.device_files(host, known):
        return CHECK.skipped("There is no device file of an accelerator.")
    names = " or ".join(known.drivers)
    return CHECK.warn(
        "There are device files, but %s/module has no %s." % (host.sys, names), "On the host, outside the container: modprobe %s" % known.drivers[0]
    )
