"""The activator is installed for this Python, and starts the probe."""

import shlex
import sys

from ddp_probe.activation.installer import state
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host

CHECK = Check(
    id="DOC501",
    slug="activator",
    title="The activator is installed for this Python, and starts the probe in a child.",
    looks_at="The files that install writes, and a child interpreter with DDP_PROBE=1.",
    remedy="python -m ddp_probe install",
)


def found_here(host: Host) -> state.State:
    """Return what the installer finds for this Python."""
    return host.once("activator", state.state)


def check(host: Host) -> Answer:
    """Ask the installer."""
    seen = found_here(host)
    if seen.missing:
        return CHECK.fail(seen.because or "Packages are missing.", "%s -m pip install %s" % (_python(), " ".join(seen.missing)))
    if seen.name == "active":
        return CHECK.ok("Active for %s, by %s." % (sys.executable, seen.via))
    if seen.name == "outdated":
        return CHECK.warn("Active for %s. %s" % (sys.executable, seen.because), "%s -m ddp_probe install" % _python())
    if seen.name == "absent":
        return CHECK.warn(
            "Not installed for %s: DDP_PROBE=1 alone records nothing." % sys.executable,
            "%s -m ddp_probe install; or, for one launch, %s -m ddp_probe run -- COMMAND." % (_python(), _python()),
        )
    return CHECK.fail("It is %s: %s" % (seen.name, seen.because), "%s -m ddp_probe uninstall; %s -m ddp_probe install" % (_python(), _python()))


def _python() -> str:
    return shlex.quote(sys.executable)
