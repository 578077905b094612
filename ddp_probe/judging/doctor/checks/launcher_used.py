"""The command starts a rank for each card."""

from ddp_probe.judging.doctor import cards, launch_command
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host

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
        return CHECK.skipped("No command is given after --.")
    if command.launcher:
        return CHECK.ok("The command starts %s." % command.launcher)
    if not command.script:
        return CHECK.skipped("%s is not a launcher or a Python program that is known here, so it is not known what it starts." % command.words[0])
    number = cards.count(host)
    rest = " ".join([("-m " if command.is_module else "") + command.script, *command.arguments])
    if number > 1:
        return CHECK.warn(
            "python starts %s alone, and %d cards are visible: only one of them is used." % (command.script, number),
            "torchrun --nproc_per_node=%d %s" % (number, rest),
        )
    return CHECK.ok("python starts %s alone; %s." % (command.script, "one card is visible" if number else "no card is visible"))
