"""Run a command under the probe; nothing is installed. Exit code, signals, stdin, stdout and stderr are the command's own.

The first Python of the command is asked whether the probe starts in it; where it does not, one line on stderr says why.
"""

import argparse
import errno
import os
import shutil
import signal
import sys
from typing import Dict, List

from ddp_probe import settings
from ddp_probe.activation.installer import _locations
from ddp_probe.cli import _armed
from ddp_probe.errors import ProbeError, UsageError

TAKES_COMMAND = True
USAGE = "python -m ddp_probe run [-h] [--dir DIR] -- COMMAND ..."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("--dir", metavar="DIR", help="the folder that collects the runs, as DDP_PROBE_DIR does")


def run(args: argparse.Namespace) -> int:
    """Replace this process by the command, so that nothing stands between it and its caller."""
    if not args.command:
        raise UsageError("The command to run is missing.", "Write it after two dashes: python -m ddp_probe run -- torchrun train.py")
    env = environment(dict(os.environ), args.dir)
    sys.stdout.flush()
    why = _armed.why_not(args.command, env)
    if why:
        sys.stderr.write("ddp_probe: not active: %s Nothing will be recorded.\n" % why)
        env[settings.BROKEN.name] = "1"  # it has been said
    # Python ignores these two from its start on, and what is ignored stays ignored over exec.
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvpe(args.command[0], args.command, env)  # noqa: S606  # the person's own command, as a list
    except OSError as exc:
        return _not_run(args.command, exc)


def environment(env: Dict[str, str], folder: str = "") -> Dict[str, str]:
    """Return the environment that turns the probe on for everything that is started with it."""
    templates = _locations.templates()
    if os.pathsep in templates:
        raise ProbeError(
            what="The command is not run.",
            why="The folder %s cannot stand on PYTHONPATH, because its name holds %r." % (templates, os.pathsep),
            what_to_do="Use 'python -m ddp_probe install', or move the package.",
        )
    before = env.get("PYTHONPATH", "")
    if before.split(os.pathsep)[0] != templates:
        env["PYTHONPATH"] = templates + (os.pathsep + before if before else "")
    env.pop("DDP_PROBE_BROKEN", None)
    env["DDP_PROBE_HOME"] = _locations.home()
    env[settings.PROBE.name] = "1"
    if folder:
        env[settings.DIR.name] = os.path.abspath(folder)
    return env


def _not_run(command: List[str], exc: OSError) -> int:
    """Say what a shell would say, with the exit codes of a shell."""
    found = shutil.which(command[0]) or os.path.exists(command[0])
    missing = exc.errno in (errno.ENOENT, errno.ENOTDIR)
    if missing and not found:
        why, remedy = "No such command is on PATH.", "Check the name; python programs are run as: -- python train.py"
    elif missing:
        why, remedy = "The interpreter named on its first line does not exist.", "Mend its first line, or run it as: -- python %s" % command[0]
    else:
        why, remedy = "%s." % exc.strerror, "Run it through its interpreter, such as: -- python %s" % command[0]
    sys.stderr.write("%s\n" % ProbeError(what="The command %r cannot be run." % command[0], why=why, what_to_do=remedy))
    return 127 if missing else 126
