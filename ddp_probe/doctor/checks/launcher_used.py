"""The command starts a rank for each card."""

from ddp_probe.doctor import cards, launch_command
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

CHECK = Check(
    id="DOC701",
    slug="launcher-used",
    title="The command uses a launcher, so that each card gets a rank.",
    looks_at="The words after --.",
    remedy="Start the program with torchrun --nproc_per_node=N.",
)


def check(host: Host) -> Answer:
    """Look for a launcher in the command."""
    command = launch_command.of(host)
    if command is None:
        return CHECK.skipped(say("No command is given after --."))
    if command.launcher:
        return CHECK.ok(say("The command starts {launcher}.", launcher=command.launcher))
    if not command.script:
        return CHECK.skipped(
            say(
                "{command} is not a launcher or a Python program that is known here, so it is not known what it starts.",
                command=quoted(command.words[0]),
            )
        )
    number, script = cards.count(host), quoted(command.script)
    rest = " ".join([("-m " if command.is_module else "") + command.script, *command.arguments])
    if number > 1:
        return CHECK.warn(
            say(
                "python starts {script} alone, and {count} cards are visible: only one of them is used.",
                script=script,
                count=number,
            ),
            quoted("torchrun --nproc_per_node=%d %s" % (number, rest)),
        )
    if number:
        return CHECK.ok(say("python starts {script} alone; one card is visible.", script=script))
    return CHECK.ok(say("python starts {script} alone; no card is visible.", script=script))
