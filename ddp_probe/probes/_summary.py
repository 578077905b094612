"""The launcher's last word: once a launch has failed, a child of its own reads what the ranks wrote and says on stderr what it was.

Never in a rank, never before the launcher's own end, and never longer than a few seconds: a reader that needs more is ended, and the line
that asks for the report is all that is said.
"""

import os
import sys
from typing import Dict, List

import ddp_probe
from ddp_probe import schema, settings
from ddp_probe.ours import ours
from ddp_probe.record import stderr

_SECONDS = 5.0
_MOST_LINES = 12
# Not -m: it would let a rich.py or a json.py in the folder of the launch be imported; PYTHONPATH may name that folder as well.
_READ = """
import sys
sys.path[0] = sys.argv.pop(1)
from ddp_probe.activation.own_imports import own_modules
with own_modules():
    from ddp_probe.cli import main
    sys.exit(main(sys.argv[1:]))
"""
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(ddp_probe.__file__)))


def wanted(last: schema.Event) -> bool:
    """Tell a launcher whose launch has failed, and a person who has not asked for silence."""
    if not isinstance(last, schema.LauncherEnd) or (last.failure is None and not last.exit_code):
        return False
    return "off" not in (settings.get(settings.REPORT), settings.get(settings.ECHO))


def say(folder: str) -> None:
    """Say the brief report of the run in this folder, a line each, and how to get the whole one."""
    import subprocess  # a rank never needs it

    try:
        lines = _read(folder)
    except ours(OSError, subprocess.TimeoutExpired, KeyboardInterrupt):
        lines = []
    for line in lines[:_MOST_LINES]:
        stderr.say(line)
    stderr.say("The whole report: %s" % command(folder))


def command(folder: str) -> str:
    """Return what a person types, in the folder where the job was launched, to read this run."""
    if os.path.dirname(folder) == os.path.join(os.getcwd(), "ddp_probe_runs"):
        return "python -m ddp_probe report"
    return "python -m ddp_probe report %s" % folder


def _read(folder: str) -> List[str]:
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", _READ, _HOME, "report", "--brief", folder],
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=_SECONDS,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace").splitlines() if done.returncode in (0, 1, 3) else []


def _environment() -> Dict[str, str]:
    """Return the environment without the probe's own variables, so that the child is not traced."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DDP_PROBE")}
    return {**kept, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
