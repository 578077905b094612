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
    found = launch_command.of(host)
    if found is None:
        return CHECK.skipped("No command is given after --.")
    first = next((word for word in found.words if "=" not in word and os.path.basename(word) != "env"), "")
    if first and shutil.which(first, path=host.environ.get("PATH", os.defpath)) is None:
        return CHECK.fail(
            "%s is not on PATH." % first, "python -m torch.distributed.run, in place of torchrun" if first == "torchrun" else "Correct the name."
        )
    if not found.script or found.is_module:
        return CHECK.ok("%s exists." % (shutil.which(first) or first))
    if os.path.isfile(found.script):
        return CHECK.ok("%s exists." % found.script)
    return CHECK.fail("%s does not exist, seen from %s." % (found.script, os.getcwd()), _similar(found.script))


def path_of(found: launch_command.ParsedCommand) -> str:
    """Return the program's file; empty if it is a module or missing."""
    return found.script if found.script and not found.is_module and os.path.isfile(found.script) else ""


def _similar(script: str) -> str:
    folder = os.path.dirname(script) or "."
    if not os.path.isdir(folder):
        return "No such folder here: %s. Change to the one from which the path is right." % folder
    close = difflib.get_close_matches(os.path.basename(script), os.listdir(folder), n=1)
    if close:
        return "Use %s, which exists." % os.path.join(os.path.dirname(script), close[0])
    return "Correct the path, or change to the folder that has the program."
