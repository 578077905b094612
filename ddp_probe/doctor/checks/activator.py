"""The activator is installed for this Python, and starts the probe."""

import shlex
import sys

from ddp_probe.activation.installer import state
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import quoted

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
        because = seen.because if seen.because else say("Packages are missing.")
        return CHECK.fail(because, _command("-m pip install %s" % " ".join(seen.missing)))
    python = quoted(sys.executable)
    if seen.name == "active":
        return CHECK.ok(say("Active for {python}, by {via}.", python=python, via=seen.via))
    if seen.name == "outdated":
        saw = say("Active for {python}. {because}", python=python, because=seen.because)
        return CHECK.warn(saw, _command("-m ddp_probe install"))
    if seen.name == "absent":
        return CHECK.warn(
            say("Not installed for {python}: DDP_PROBE=1 alone records nothing.", python=python),
            say(
                "{install}; or, for one launch, {run}.",
                install=_command("-m ddp_probe install"),
                run=_command("-m ddp_probe run -- COMMAND"),
            ),
        )
    saw = say("It is {state}: {because}", state=seen.name, because=seen.because)
    uninstall, install = _command("-m ddp_probe uninstall"), _command("-m ddp_probe install")
    return CHECK.fail(saw, quoted("%s; %s" % (uninstall, install)))


def _command(arguments: str) -> Text:
    return quoted("%s %s" % (shlex.quote(sys.executable), arguments))
