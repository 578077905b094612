"""One rank's model is spread over several cards, and DDP gets it as if it were on one card."""

from typing import Iterator

from ddp_probe.judging import wrap_calls
from ddp_probe.judging.rule import Finding, Printed, Rule, first_of, shown
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import listed, named

RULE = Rule(
    id="DDP110",
    slug="model-over-several-cards",
    cause="model_parallel_inside_ddp",
    title="The model of one rank is spread over several cards, and DDP is given device_ids for it.",
    symptom=(
        "DDP raises 'device_ids and output_device arguments only work with … module parameters {device(type='cuda', index=0), device(type='cuda', "
        "index=1)}'."
    ),
    evidence=(
        "The placement recorded before the wrap shows parameters on two or more cards of one type, and device_ids is not None. If a part is on "
        "cpu, see submodule-left-behind."
    ),
    remedy=(
        "For data parallelism, put each rank's whole model on its own card: model.to(local_rank's device), not device_map='auto' or a balanced "
        "map. For model parallelism inside DDP, pass device_ids=None and output_device=None."
    ),
    restart="no",  # The device map stands in the code.
    needs=("ddp.init",),
    printed=(
        Printed(
            wrap_calls.DEVICE_IDS
            + r"\{(?P<devices>device\(type='(?P<kind>(?!cpu)\w+)',\s*index=\d+\),\s*device\(type='(?P=kind)',\s*index=\d+\)[^}]*)(?:\}|$)",
            says="The parameters of one rank are on {devices}.",
        ),
        Printed(
            (
                r"module must have its parameters and buffers on device (?P<wanted>\S+) \(device_ids\[0\]\) but found one of them on device: "
                r"(?P<found>(?!cpu)\S+)"
            ),
            says="A parameter is on {found}, and DataParallel needs all of them on {wanted}.",
        ),
        Printed(
            r"You can't train a model that has been loaded with `?device_map='auto'`? in any distributed mode",
            says="The model was loaded with device_map='auto', which spreads it over the cards of all ranks.",
        ),
        Printed(
            r"found at least two devices, (?P<one>(?!cpu)\w+:\d+) and (?P<two>(?!cpu)\w+:\d+)",
            beside=r"device_map ?= ?['\"](?:auto|balanced\w*|sequential)['\"]",
            says="device_map spreads the model over {one} and {two}, and its code does not move the tensors between them.",
        ),
        Printed(
            r"loaded in [\w-]{4,6} (?:or [\w-]{4,6} )?precision on multiple devices in any distributed mode",
            says=(
                "The model was loaded in 8 or 4 bits over several cards, and each rank needs the whole of it on its own: give device_map "
                "that card alone."
            ),
        ),
    ),
    yields_to=("init-failure-swallowed",),
)


def check(run: Run) -> Iterator[Finding]:
    """Find refused models whose parameters are on several cards of one type."""
    spread = [each for each in wrap_calls.wraps(run) if len(each.devices) > 1 and len(each.types) == 1 and each.ids]
    lost = wrap_calls.refused(run, spread)
    if not lost:
        return
    first = lost[0]
    leaf = first.placement.off_majority[0] if first.placement.off_majority else None
    evidence = []
    for wrapped in lost:
        devices = listed(wrapped.devices)
        text = say("parameters on {devices}, device_ids {ids}", devices=devices, ids=wrapped.ids)
        evidence.append(shown(wrapped.call, text))
    yield RULE.found(
        ranks=wrap_calls.wrapping_ranks(lost),
        verdict=say(
            "One model is spread over {count} cards ({devices}{leaf}) on {who}, and DDP gets device_ids {ids} from {giver}.",
            count=len(first.devices),
            devices=listed(first.devices),
            leaf=say(", {name} on {device}", name=leaf.name, device=leaf.device) if leaf else "",
            who=named(wrap_calls.wrapping_ranks(lost)),
            ids=wrap_calls.all_ids(lost),
            giver=wrap_calls.giver(first),
        ),
        evidence=first_of(evidence),
        when=min(each.call.when for each in lost),
        explains=wrap_calls.failures(run, lost),
        change=[
            *wrap_calls.without_ids(first),
            say("For data parallelism, put each rank's whole model on its own card instead."),
        ],
    )
