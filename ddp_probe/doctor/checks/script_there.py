"""The program of the command exists."""

import difflib
import os
import shutil

from ddp_probe.doctor import launch_command
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import quoted

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
        return CHECK.skipped(say("No command is given after --."))
    first = next((word for word in command.words if "=" not in word and os.path.basename(word) != "env"), "")
    if first and shutil.which(first, path=host.environ.get("PATH", os.defpath)) is None:
        remedy = say("Correct the name.")
        if first == "torchrun":
            remedy = say("python -m torch.distributed.run, in place of torchrun")
        return CHECK.fail(say("{program} is not on PATH.", program=quoted(first)), remedy)
    if not command.script or command.is_module:
        return CHECK.ok(say("{program} exists.", program=quoted(shutil.which(first) or first)))
    if os.path.isfile(command.script):
        return CHECK.ok(say("{program} exists.", program=quoted(command.script)))
    saw = say(
        "{program} does not exist, seen from {folder}.",
        program=quoted(command.script),
        folder=quoted(os.getcwd()),
    )
    return CHECK.fail(saw, _similar(command.script))


def path_of(command: launch_command.ParsedCommand) -> str:
    """Return the program's file; empty if it is a module or missing."""
    return command.script if command.script and not command.is_module and os.path.isfile(command.script) else ""


def _similar(script: str) -> Text:
    folder = os.path.dirname(script) or "."
    if not os.path.isdir(folder):
        return say(
            "No such folder here: {folder}. Change to the one from which the path is right.",
            folder=quoted(folder),
        )
    close = difflib.get_close_matches(os.path.basename(script), os.listdir(folder), n=1)
    if close:
        return say("Use {path}, which exists.", path=quoted(os.path.join(os.path.dirname(script), close[0])))
    return say("Correct the path, or change to the folder that has the program.")
