"""The command starts no more ranks than there are cards."""

from ddp_probe.doctor import cards, launch_command
from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

CHECK = Check(
    id="DOC702",
    slug="ranks-and-cards",
    title="The command starts as many ranks as there are cards on this host.",
    looks_at="--nproc_per_node of the command, or --nproc of doctor, and the cards that torch counts.",
    remedy="Start one rank for each card.",
)


def check(host: Host) -> Answer:
    """Compare the numbers."""
    command = launch_command.of(host)
    given = command.options.get("nproc_per_node", "") if command else ""
    wanted = (command.number("nproc_per_node") if command else None) or host.request.nproc
    if given and wanted is None:
        return CHECK.skipped(say("--nproc_per_node={given} lets torchrun count.", given=given))
    if wanted is None:
        return CHECK.skipped(say("No number of ranks is given."))
    number = cards.count(host)
    if not number:
        return CHECK.skipped(say("There is no card; {ranks} ranks would share the CPU.", ranks=wanted))
    remedy = quoted("--nproc_per_node=%d" % number)
    if wanted > number:
        saw = say("{ranks} ranks are to start, and torch counts {cards} cards.", ranks=wanted, cards=number)
        return CHECK.fail(saw, remedy)
    if wanted < number:
        saw = say(
            "{ranks} ranks are to start, and torch counts {cards} cards: {idle} stay idle.",
            ranks=wanted,
            cards=number,
            idle=number - wanted,
        )
        return CHECK.warn(saw, remedy)
    return CHECK.ok(say("{ranks} ranks, {cards} cards.", ranks=wanted, cards=number))
