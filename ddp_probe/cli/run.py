"""Run a command under the probe; nothing is installed. Exit code, signals, stdin, stdout and stderr are the command's own.

The first Python of the command is checked before it starts. If the probe will not load there, one line on stderr says why.
"""

import argparse
import errno
import os
import shutil
import signal
import sys
from typing import Dict, List

from ddp_probe.activation.installer import locations
from ddp_probe.cli._commands import FOLDERS, Command
from ddp_probe.shared import settings
from ddp_probe.shared.errors import ProbeError, UsageError
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

COMMAND = Command(
    "run",
    order=40,
    summary="Run one command under the probe; nothing is installed.",
    takes_command=True,
    usage="python -m ddp_probe run [-h] [--dir DIR] -- COMMAND ...",
    offers={"dir": FOLDERS},
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--dir", metavar="DIR", help="the folder for all runs, like DDP_PROBE_DIR")


def run(args: argparse.Namespace) -> int:
    """Replace this process with the command, so that its caller talks to it directly."""
    if not args.command:
        raise UsageError("The command to run is missing.", "Write it after two dashes: python -m ddp_probe run -- torchrun train.py")
    from ddp_probe.doctor import armed_programs

    env = environment(dict(os.environ), args.dir)
    sys.stdout.flush()
    why = armed_programs.why_not(args.command, env)
    if why:
        from ddp_probe.showing.remark import remark

        remark(say("not active: {why} Nothing will be recorded.", why=why))
        env[settings.BROKEN.name] = "1"  # already reported
    # Python ignores these two signals at start-up, and ignored signals stay ignored after exec.
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvpe(args.command[0], args.command, env)  # noqa: S606  # the person's own command, as a list
    except OSError as exc:
        raise _not_run(args.command, exc) from exc


def environment(env: Dict[str, str], folder: str = "") -> Dict[str, str]:
    """Return the environment that turns on the probe in every process started with it."""
    templates = locations.templates()
    if os.pathsep in templates:
        raise ProbeError(
            what="The command is not run.",
            why=say(
                "The folder {folder} cannot be on PYTHONPATH, because its name contains {character}.",
                folder=templates,
                character=quoted(repr(os.pathsep)),
            ),
            what_to_do="Use 'python -m ddp_probe install', or move the package.",
        )
    before = env.get("PYTHONPATH", "")
    if before.split(os.pathsep)[0] != templates:
        env["PYTHONPATH"] = templates + (os.pathsep + before if before else "")
    env.pop("DDP_PROBE_BROKEN", None)
    env["DDP_PROBE_HOME"] = locations.home()
    env[settings.PROBE.name] = "1"
    if folder:
        env[settings.DIR.name] = os.path.abspath(folder)
    return env


def _not_run(command: List[str], exc: OSError) -> ProbeError:
    """Return the error that a shell would print, with the shell's exit code."""
    path = shutil.which(command[0]) or os.path.exists(command[0])
    missing = exc.errno in (errno.ENOENT, errno.ENOTDIR)
    if missing and not path:
        why: str = say("No such command is on PATH.")
        remedy = say("Check the name. Run a Python program as: -- python train.py")
    elif missing:
        why = say("The interpreter named on its first line does not exist.")
        remedy = say("Fix its first line, or run it as: -- python {command}", command=command[0])
    else:
        why = "%s." % exc.strerror
        remedy = say("Run it through its interpreter, such as: -- python {command}", command=command[0])
    what = say("The command {command} cannot be run.", command=quoted(repr(command[0])))
    error = ProbeError(what=what, why=why, what_to_do=remedy)
    error.exit_code = 127 if missing else 126
    return error
