"""The launcher starts a Python for which the probe is installed."""

import os
import shlex
import shutil
import sys
from typing import List

from ddp_probe.doctor import armed_programs
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.checks import activator
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

CHECK = Check(
    id="DOC503",
    slug="launcher-recorded",
    title="The launcher starts a Python in which DDP_PROBE=1 records the job.",
    looks_at="The launch command, or torchrun on PATH: its interpreter is started with DDP_PROBE=1.",
    remedy="Install the probe for the Python of the launcher, or start the job with python -m ddp_probe run -- COMMAND.",
    needs=("activator",),
)


def check(host: Host) -> Answer:
    """Start the interpreter of the command."""
    path = host.environ.get("PATH", os.defpath)
    command: List[str] = list(host.request.command) or [shutil.which("torchrun", path=path) or ""]
    if not command[0]:
        return CHECK.skipped(say("No command is given after --, and torchrun is not on PATH."))
    python = armed_programs.interpreter(command, host.environ)
    launcher = quoted(os.path.basename(command[0]))
    if not python:
        because = say("It is not known which Python {command} starts.", command=quoted(command[0]))
        return CHECK.skipped(because)
    if os.path.dirname(os.path.abspath(python)) == os.path.dirname(os.path.abspath(sys.executable)):
        return CHECK.skipped(say("{launcher} starts this Python, which DOC501 looks at.", launcher=launcher))
    if activator.found_here(host).name not in ("active", "outdated"):
        return CHECK.skipped(say("The probe is not installed for this Python either."))
    why = armed_programs.why_not(command, {**host.environ, "DDP_PROBE": "1"})
    if not why:
        saw = say("{launcher} starts {python}, and is recorded.", launcher=launcher, python=quoted(python))
        return CHECK.ok(saw)
    install = "{0} -m pip install ddp-probe; {0} -m ddp_probe install".format(shlex.quote(python))
    return CHECK.fail(
        say(
            "{launcher} starts {python}, where DDP_PROBE=1 records nothing: {why}",
            launcher=launcher,
            python=quoted(python),
            why=why,
        ),
        quoted(install),
    )
