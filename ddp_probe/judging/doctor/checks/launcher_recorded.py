"""The launcher starts a Python for which the probe is installed."""

import os
import shlex
import shutil
import sys
from typing import List

from ddp_probe.judging.doctor import armed_programs
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.checks import activator
from ddp_probe.judging.doctor.host import Host

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
        return CHECK.skipped("No command is given after --, and torchrun is not on PATH.")
    python = armed_programs.interpreter(command, host.environ)
    if not python:
        return CHECK.skipped("It is not known which Python %s starts." % command[0])
    if os.path.dirname(os.path.abspath(python)) == os.path.dirname(os.path.abspath(sys.executable)):
        return CHECK.skipped("%s starts this Python, which DOC501 looks at." % os.path.basename(command[0]))
    if activator.found_here(host).name not in ("active", "outdated"):
        return CHECK.skipped("The probe is not installed for this Python either.")
    why = armed_programs.why_not(command, {**host.environ, "DDP_PROBE": "1"})
    if not why:
        return CHECK.ok("%s starts %s, and is recorded." % (os.path.basename(command[0]), python))
    return CHECK.fail(
        "%s starts %s, where DDP_PROBE=1 records nothing: %s" % (os.path.basename(command[0]), python, why),
        "%s -m pip install ddp-probe; %s -m ddp_probe install" % (shlex.quote(python), shlex.quote(python)),
    )
