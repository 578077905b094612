"""A host runs more ranks than it has visible cards: the last ranks ask for a card that does not exist, or share one."""

from itertools import chain
from typing import Iterator

from ddp_probe.judging import card_use
from ddp_probe.judging.printed import by_text
from ddp_probe.judging.rule import ERROR, WARNING, Finding, Printed, Rule, failed, shown
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named, quoted

RULE = Rule(
    id="DDP301",
    slug="more-processes-than-cards",
    cause="nproc_gt_visible_gpus",
    title="More processes run on a host than there are visible cards.",
    symptom=(
        "set_device raises 'invalid device ordinal', or NCCL says 'Duplicate GPU detected'; if launch code takes LOCAL_RANK modulo the number of "
        "cards, ranks share a card without a message."
    ),
    evidence=(
        "The card that a rank asked for, or its LOCAL_RANK, is not below the number of cards that it could see, and the launcher did not see more "
        "of them. If each rank sees different cards, see card-is-not-the-local-rank."
    ),
    remedy=(
        "Start as many processes as there are visible cards: torchrun --nproc_per_node=<cards>; or make more cards visible "
        "(CUDA_VISIBLE_DEVICES or the vendor's variable, the limits of the container and the scheduler)."
    ),
    restart="no",  # The launch asks for the same number of processes again.
    needs=("device.set", "process.start"),
    printed=(
        Printed(
            card_use.NO_SUCH_CARD,
            unless=r"cudaGetDeviceCount|transport/p2p|SLURM|srun|slurmstepd|gpu-bind|gpus-per-task|ROCR_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|comp_models/native\.py",
        ),
        Printed(
            r"You requested (?:gpu|GPU)s?: (?P<asked>[^\n]*)\n? *But your machine only has: (?P<there>(?!\[\])[^\n]*)",
            says="The job asks for cards {asked}; the host has {there}.",
            ranks=False,
        ),
        Printed(
            r"No slot '?(?P<slot>\d+)'? specif\w+ on host",
            says="The job asks for card {slot}, and the launcher does not know this card.",
            ranks=False,
        ),
        Printed(r"insufficient CUDA devices for DDP|not enough GPUs? (?:available )?for (?:the )?(?:requested )?\w*processes"),
        Printed(
            r"AssertionError|assert [^\n]*<=? *torch\.cuda\.device_count\(\)",
            beside=r"assert [^\n]*<=? *torch\.cuda\.device_count\(\)",
            says="The job asks for more cards on this host than torch.cuda.device_count().",
        ),
        Printed(
            r"Invalid CUDA '(?:--)?device[ =](?P<asked>[\d,]+)' requested",
            beside=r"torch\.cuda\.device_count\(\): [1-9]",
            says="The job asks for cards {asked}, and torch does not see all of them.",
            ranks=False,
        ),
        Printed(
            r"tensor_parallel_size \(\d+\) to less than max local gpu count|number of required GPUs exceeds the total number of available"
            r"|(?:runtime result = |ErrCode=|error code is )107001\b|device (?:id )?is out of range"
        ),
        Printed(
            r"device_id (?P<asked>\S+) is out of range\. Please use a device index less than the number of accelerators available: (?P<there>\d+)",
            says="A rank asks for {asked}, but sees {there} cards.",
        ),
        Printed(
            r"You requested to find (?P<asked>\d+) devices but this machine only has (?P<there>\d+) GPUs",
            says="The job asks for {asked} cards; the host has {there}.",
            ranks=False,
        ),
        Printed(
            r"local_rank (?P<asked>\d+) exceeds available GPUs in CUDA_VISIBLE_DEVICES",
            says="The launcher starts local rank {asked}, but CUDA_VISIBLE_DEVICES has no card for it.",
            ranks=False,
        ),
        Printed(
            r"Placement group creation timed out",
            beside=r"requested by the placement group: [^\n]*'(?:GPU|NPU|HPU|TPU)'",
            says="Ray's cluster does not have as many free cards as the workers ask for: start fewer, add nodes, or end what holds the cards.",
            ranks=False,
        ),
        # NCCL before 2.13 does not name the cards; this is the most frequent reason for its 'invalid usage' when a group is made.
        Printed(
            r"NCCL error in[^\n]*invalid usage[^\n]*",
            unless=r"Last error:",
            says="NCCL rejects the ranks' cards without a reason: most often two ranks are on one card.",
            ranks=False,
        ),
        Printed(card_use.DUPLICATE, says="Rank {rank1} and rank {rank2} are on one card."),
    ),
    yields_to=("set-device-missing", "card-number-fixed", "visible-cards-wrong", "card-is-not-the-local-rank"),
)


def check(run: Run) -> Iterator[Finding]:
    """Find a rank that asked for a card beyond the last one, then ranks that share cards because there are too few."""
    refused, hosts = card_use.refused(run), card_use.hosts(run)
    asked = [refusal for refusal in refused if refusal.there is not None and refusal.slot == refusal.process.local_rank]
    beyond = [refusal for refusal in asked if refusal.slot >= (refusal.there or 0) and not card_use.own(hosts[card_use.machine(refusal.process)])]
    if beyond:
        yield _refusal(run, beyond)
        return
    few = [group for group in card_use.shared(run) if card_use.why(run, group) == card_use.FEW]
    if few:
        yield _sharing(run, few)
    elif all(refusal.there is None and refusal.slot == refusal.process.local_rank for refusal in refused):
        yield from by_text(RULE, run)


def _refusal(run: Run, beyond: "list[card_use.Refused]") -> Finding:
    first = beyond[0]
    hosts = {card_use.machine(refusal.process): refusal.there or 0 for refusal in beyond}
    ranks = [
        process.rank
        for process in run.processes
        if process.rank is not None and (process.local_rank or 0) >= hosts.get(card_use.machine(process), 1 << 30)
    ]
    variables = quoted(" ".join("%s=%s" % variable for variable in sorted(card_use.visible(first.process).items())))
    processes = first.process.started.environment.get("LOCAL_WORLD_SIZE", "")
    host, started = first.process.host, ""
    if processes:
        started = say(", and {processes} processes were started on {host}", processes=processes, host=host)
    verdict = say(
        "{who:capital} asked for card {card}, but {there} {there:is|are} visible{variables}{started}.",
        who=named([first.process.rank or 0]),
        card=first.slot,
        there=first.there or 0,
        variables=say(" ({variables})", variables=variables) if variables else "",
        started=started,
    )
    by_change = say(": change {variables}", variables=variables) if variables else ""
    if processes:
        remedy = say(
            "Start with --nproc_per_node={there}, or make {processes} cards visible{by_change}.",
            there=first.there or 0,
            processes=processes,
            by_change=by_change,
        )
    else:
        remedy = say(
            "Start with --nproc_per_node={there}, or make as many as processes cards visible{by_change}.",
            there=first.there or 0,
            by_change=by_change,
        )
    evidence = []
    for refusal in beyond[:4]:
        error = quoted(refusal.failure.text)
        text = say("{call} asks for card {card}: {error}", call=refusal.call.name, card=refusal.slot, error=error)
        evidence.append(failed(refusal.failure, text))
    return RULE.found(
        ranks=ranks, verdict=verdict, evidence=evidence, when=first.failure.when, remedy=remedy, explains=[refusal.failure for refusal in beyond]
    )


def _sharing(run: Run, few: "list[list[card_use.CardUse]]") -> Finding:
    first = few[0]
    cards = max(use.there or 0 for use in first)
    beyond = [use.process for use in chain.from_iterable(few) if (use.process.local_rank or 0) >= cards > 1]
    late = ranks_of(beyond)
    ranks = late or card_use.misplaced(run, few)
    together = named(ranks_of(use.process for use in first))
    losses = card_use.lost(run)
    verdict = say(
        "{who:capital} are all on {device} of {host}: {cards} {cards:card is|cards are} visible to more processes than that.",
        who=together,
        device=first[0].device,
        host=first[0].process.host,
        cards=cards,
    )
    evidence = []
    for use in first[:4]:
        who, there = named(ranks_of([use.process])), use.there or 0
        template = "{who} {who:wraps|wrap} a model on {device}, {there} visible"
        text = say(template, who=who, device=use.device, there=there)
        evidence.append(shown(use.call, text))
    when = card_use.began(few)
    remedy = say("Start with --nproc_per_node={cards}, or make more cards visible.", cards=cards)
    return RULE.found(
        ranks=ranks, verdict=verdict, evidence=evidence, when=when, remedy=remedy, explains=losses, severity=ERROR if losses else WARNING
    )
