"""The driver of the cards is loaded."""

import os

from ddp_probe.doctor import cards
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import listed, quoted

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
    if known is None:
        return CHECK.skipped(say("No accelerator is detected."))
    if not known.drivers:
        return CHECK.skipped(say("The name of the driver of {kind} is not known.", kind=known.name))
    for name in known.drivers:
        if os.path.isdir(os.path.join(host.sys, "module", name)):
            version = host.read(host.sys, "module", name, "version").strip()
            driver = quoted(("%s %s" % (name, version)).strip())
            return CHECK.ok(say("The driver {driver} is loaded.", driver=driver))
    if not cards.device_files(host, known):
        return CHECK.skipped(say("There is no device file of an accelerator."))
    return CHECK.warn(
        say(
            "There are device files, but {folder} has no {drivers}.",
            folder=quoted("%s/module" % host.sys),
            drivers=listed(known.drivers, by=" or "),
        ),
        say(
            "On the host, outside the container: {command}",
            command=quoted("modprobe %s" % known.drivers[0]),
        ),
    )
