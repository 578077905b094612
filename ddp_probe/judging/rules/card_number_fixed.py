"""The program uses one fixed card number on all ranks: card 0 does all the work."""

from typing import Any, Iterator

from ddp_probe.judging import card_use
from ddp_probe.judging.rule import ERROR, WARNING, Evidence, Finding, Printed, Rule, shown
from ddp_probe.judging.vendor_words import DEVICES
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import named, place, quoted

_NUMBER_IN_SOURCE = r"set_device\( *(?:0|['\"]\w+:0['\"]) *\)|\.cuda\( *0 *\)|['\"](?:cuda|%s):0['\"]|device_ids *= *\[ *0 *\]" % DEVICES

RULE = Rule(
    id="DDP309",
    slug="card-number-fixed",
    cause="hardcoded_device_zero",
    title="Several ranks of one host share a card because the program uses a fixed card number.",
    symptom="One card runs all processes while the others are idle; NCCL says 'Duplicate GPU detected'.",
    evidence=(
        "The models of several ranks are on one card when they are wrapped, and set_device or the move gave that number on each rank, "
        "although other cards are visible."
    ),
    remedy=(
        "Take the number from the launcher: local_rank = int(os.environ['LOCAL_RANK']), then set_device(local_rank) and model.to(torch.device(type, "
        "local_rank)). Do not write 'cuda:0', .cuda(0) or device_ids=[0]."
    ),
    restart="no",  # The number stands in the code.
    needs=("ddp.init", "device.set", "module.move"),
    printed=(
        Printed(
            card_use.DUPLICATE, beside=_NUMBER_IN_SOURCE, says="Rank {rank1} and rank {rank2} share a card, whose number is fixed in the program."
        ),
        Printed(
            r"found at least two devices, (?:\w+:0 and \w+:[1-9]|\w+:[1-9]\d* and \w+:0)\b",
            beside=r"[/\\]nn[/\\]parallel[/\\]distributed\.py|-- Process \d+ terminated|local_rank|torchrun|accelerate launch",
            unless=r"accelerate[/\\]hooks\.py|device_map",
            says="One operation gets a tensor on card 0 and one on the rank's own card.",
            next=(
                "Print the device of both tensors at the line of the traceback: the one on card 0 was made with a fixed number, loaded without "
                "map_location, or sent by another rank as an object."
            ),
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Find the ranks whose models are on one card, and the calls that name it."""
    groups = [group for group in card_use.shared(run) if card_use.why(run, group) == card_use.FIXED]
    if not groups:
        return
    first, losses = groups[0], card_use.lost(run)
    calls = [call for call in map(card_use.named_card, first) if call is not None]
    what, where = _named_by(calls[0]), place(calls[0].site)
    there = max((use.there or 0 for use in first), default=0)
    yield RULE.found(
        ranks=card_use.misplaced(run, groups),
        verdict=say(
            "{who:capital} are all on {device} of {host}{cards}, because {what} names that card at {where}.",
            who=named(ranks_of(use.process for use in first)),
            device=first[0].device,
            host=first[0].process.host,
            cards=say(", of {count}", count=there) if there else "",
            what=what,
            where=where,
        ),
        evidence=[*(shown(call, what) for call in calls[:4]), *(_shown(use) for use in first[:2])],
        when=card_use.began(groups),
        remedy=say(
            "At {where} take the number from the launcher: local_rank = int(os.environ['LOCAL_RANK']), in place of {card}, "
            "in set_device and in the model's device.",
            where=where,
            card=first[0].slot,
        ),
        explains=losses,
        severity=ERROR if losses else WARNING,
    )


def _named_by(call: "LoggedCall[Any]") -> Text:
    if isinstance(call.begin, schema.SetDevice):
        return quoted("set_device(%s)" % call.begin.device)
    return quoted(".%s(%s)" % (call.begin.method, call.begin.destination))


def _shown(use: card_use.CardUse) -> Evidence:
    who = named(ranks_of([use.process]))
    text = say("{who} {who:wraps|wrap} a model on {device}", who=who, device=use.device)
    return shown(use.call, text)
