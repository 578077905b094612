"""No rank chooses its card: all ranks of a host train on the first one."""

from typing import Iterator

from ddp_probe.judging import card_use, change
from ddp_probe.judging.rule import ERROR, WARNING, Finding, Printed, Rule, first_of, shown
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.shared.accelerators import ACCELERATORS
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import counted, named, quoted

RULE = Rule(
    id="DDP303",
    slug="set-device-missing",
    cause="set_device_missing",
    title="Several ranks of one host share a card because none of them chooses a card.",
    symptom=(
        "One card runs all processes while the others are idle; its memory runs out early; NCCL says 'Duplicate GPU detected' at the first "
        "collective."
    ),
    evidence=(
        "The models of several ranks are on one card when they are wrapped, set_device was not called before, and the move did not name a card. "
        "If it named a number, see card-number-fixed."
    ),
    remedy=(
        "Before the model is moved and before the first collective: local_rank = int(os.environ['LOCAL_RANK']); torch.cuda.set_device(local_rank) "
        "(or the accelerator's own module), then model.to(local_rank's device)."
    ),
    restart="no",  # No line chooses a card the next time.
    needs=("ddp.init",),
    printed=(
        Printed(
            r"out of memory\. Tried to allocate [^\n]{1,40}\. GPU 0 [^\n]*?(?:Process \d+ has [\d.]+ [MG]iB memory in use\. ?){3,}",
            says="Card 0 is full, and torch lists several other processes on it: the ranks of this host have not chosen a card of their own.",
            ranks=False,
        ),
        Printed(
            card_use.DUPLICATE,
            beside=(
                r" in (?:barrier|all_gather_object|broadcast_object_list|monitored_barrier)\b"
                r"|to perform barrier as devices used by this process are currently unknown"
            ),
            says="Rank {rank1} and rank {rank2} are on one card in a collective, and no card was chosen before it.",
        ),
        Printed(
            r"NCCL error in[^\n]*invalid usage[^\n]*",
            beside=r" in (?:all_gather_object|broadcast_object_list|gather_object|scatter_object_list)\b",
            unless=r"Last error:|set_device",
            says="NCCL rejects the ranks' cards in the exchange of objects, which uses the current card: no rank has chosen its own.",
        ),
        Printed(
            r"Expects tensor to be on the compute device (?P<wanted>(?!\w+:0)\w+:\d+)(?!, was on cpu)",
            says="FSDP computes on {wanted}, and this process's current card is another one: it has not chosen its card.",
        ),
        Printed(
            r"FSDP-managed module unexpectedly has parameters on (?P<found>\w+:\d+)",
            says="FSDP finds the parameters on {found}, which is not this process's card.",
        ),
        Printed(
            r"Could not compute stream ID for [^\n]* on device -1\b",
            says="The job asks for a stream on device -1: this process has not chosen its card.",
        ),
    ),
    yields_to=("card-number-fixed",),
)


def check(run: Run) -> Iterator[Finding]:
    """Find ranks whose models are on one card that none of them named."""
    groups = [group for group in card_use.shared(run) if card_use.why(run, group) == card_use.UNSET]
    if not groups:
        return
    first, losses = groups[0], card_use.lost(run)
    there = first[0].there
    yield RULE.found(
        ranks=card_use.misplaced(run, groups),
        verdict=say(
            "{who:capital} wrap their models on {device} of {host}{shows}, and none of them chose a card before.",
            who=named(ranks_of(use.process for use in first)),
            device=first[0].device,
            host=first[0].process.host,
            shows=say(", which shows {cards}", cards=counted(there, "card")) if there else "",
        ),
        evidence=first_of([shown(use.call, _wraps(use)) for use in first]),
        when=card_use.began(groups),
        change=_change(first[0]),
        explains=losses,
        severity=ERROR if losses else WARNING,
    )


def _wraps(use: card_use.CardUse) -> Text:
    template = "{who} {who:wraps|wrap} a model on {device}; no set_device before"
    return say(template, who=named(ranks_of([use.process])), device=use.device)


def _change(use: card_use.CardUse) -> change.Change:
    """Set the card before the first collective, which uses the current card."""
    group = use.process.first(schema.InitProcessGroup)
    site = group.site if group is not None else use.call.site
    plugins = [accelerator for accelerator in ACCELERATORS if accelerator.modules]
    plugin = next((plugin for plugin in plugins if use.kind in plugin.device_types), None)
    module = plugin.modules[0] if plugin is not None else "torch"
    text = "%s.set_device(int(os.environ['LOCAL_RANK']))" % (
        module if plugin is not None and "%s:set_device" % module in plugin.set_device else "torch.%s" % use.kind
    )
    return [
        change.Lines(site, (text,), ("os", module)),
        say(
            "Give the model's device no number, or this one: {device}.",
            device=quoted("torch.device('%s', local_rank)" % use.kind),
        ),
    ]
