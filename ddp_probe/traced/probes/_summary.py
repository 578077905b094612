"""The launcher's last word: once a launch has failed, a child of its own reads what the ranks wrote and says on stderr what it was.

Never in a rank, never before the launcher's own end, and never longer than a few seconds: a reader that needs more is ended, and the line
that asks for the report is all that is said.
"""

from typing import List

from ddp_probe.shared import schema
from ddp_probe.shared.ours import ours
from ddp_probe.traced.record import brief, stderr

_SECONDS = 5.0
_MOST_LINES = 12


def wanted(last: schema.Event) -> bool:
    """Tell a launcher whose launch has failed, and a person who has not asked for silence."""
    return isinstance(last, schema.LauncherEnd) and (last.failure is not None or bool(last.exit_code)) and brief.is_wanted()


def say(folder: str) -> None:
    """Say the brief report of the run in this folder, a line each, and how to get the whole one."""
    import subprocess  # a rank never needs it

    try:
        lines = _read(folder)
    except ours(OSError, subprocess.TimeoutExpired, KeyboardInterrupt):
        lines = []
    for line in lines[:_MOST_LINES]:
        stderr.say(line)
    stderr.say("The whole report: %s" % brief.command("report", folder))


def _read(folder: str) -> List[str]:
    import subprocess

    done = subprocess.run(
        brief.arguments(folder),
        env=brief.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=_SECONDS,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace").splitlines() if done.returncode in (0, 1, 3) else []
