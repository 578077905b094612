"""The command starts no more ranks than there are cards."""

from ddp_probe.judging.doctor import cards, launch_command
from ddp_probe.judging.doctor.check import Answer, Check
from ddp_probe.judging.doctor.host import Host

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
        return CHECK.skipped("--nproc_per_node=%s lets torchrun count." % given)
    if wanted is None:
        return CHECK.skipped("No number of ranks is given.")
    number = cards.count(host)
    if not number:
        return CHECK.skipped("There is no card; %d ranks would share the CPU." % wanted)
    if wanted > number:
        return CHECK.fail("%d ranks are to start, and torch counts %d cards." % (wanted, number), "--nproc_per_node=%d" % number)
    if wanted < number:
        return CHECK.warn(
            "%d ranks are to start, and torch counts %d cards: %d stay idle." % (wanted, number, number - wanted), "--nproc_per_node=%d" % number
        )
    return CHECK.ok("%d ranks, %d cards." % (wanted, number))
