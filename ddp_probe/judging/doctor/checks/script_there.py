"""The program of the command exists."""

import difflib
import os
import shutil

from ddp_probe.judging.doctor import launch_command
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host

CHECK = Check(
    id="DOC704",
    slug="program-there",
    title="The launcher and the program that the command names exist.",
    looks_at="PATH, and the file of the program.",
    remedy="Correct the path, or change to the folder that has the program.",
)


def check(host: Host) -> Answer:
    """Look for both."""
    command = launch_command.of(host)
    if command is None:
        return CHECK.skipped("No command is given after --.")
    first = next((word for word in command.words if "=" not in word and os.path.basename(word) != "env"), "")
    if first and shutil.which(first, path=host.environ.get("PATH", os.defpath)) is None:
        return CHECK.fail(
            "%s is not on PATH." % first, "python -m torch.distributed.run, in place of torchrun" if first == "torchrun" else "Correct the name."
        )
    if not command.script or command.is_module:
        return CHECK.ok("%s exists." % (shutil.which(first) or first))
    if os.path.isfile(command.script):
        return CHECK.ok("%s exists." % command.script)
    return CHECK.fail("%s does not exist, seen from %s." % (command.script, os.getcwd()), _similar(command.script))


def path_of(command: launch_command.ParsedCommand) -> str:
    """Return the program's file; empty if it is a module or missing."""
    return command.script if command.script and not command.is_module and os.path.isfile(command.script) else ""


def _similar(script: str) -> str:
    folder = os.path.dirname(script) or "."
    if not os.path.isdir(folder):
        return "No such folder here: %s. Change to the one from which the path is right." % folder
    close = difflib.get_close_matches(os.path.basename(script), os.listdir(folder), n=1)
    if close:
        return "Use %s, which exists." % os.path.join(os.path.dirname(script), close[0])
    return "Correct the path, or change to the folder that has the program."
