"""device_ids names another card than the one that the parameters are on: DDP accepts it, but the first step fails."""

from typing import Iterator, List

from ddp_probe.judging import wrap_calls
from ddp_probe.judging.card_use import number
from ddp_probe.judging.rule import ERROR, WARNING, Evidence, Finding, Printed, Rule, failed, first_of, shown
from ddp_probe.reading.model import Failed, Run
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, named, quoted

RULE = Rule(
    id="DDP108",
    slug="device-ids-of-another-card",
    cause="device_ids_vs_param_device_mismatch",
    title="device_ids names a different card from the one that holds the model's parameters.",
    symptom="The wrap succeeds, and the first step fails: 'Expected all tensors to be on the same device, but found at least two devices'.",
    evidence=(
        "In the ddp.init event the number in device_ids differs from the card of all parameters. The constructor of DDP does not compare them; "
        "forward moves the inputs to device_ids[0]."
    ),
    remedy=(
        "Use one number for both: model.to(torch.device('cuda', local_rank)) and DistributedDataParallel(model, device_ids=[local_rank]); "
        "or leave device_ids out."
    ),
    restart="no",  # Both numbers stand in the code.
    needs=("ddp.init",),
    printed=(
        Printed(
            r"[Ii]nconsistent compute device and ?\W?device_id ?\W? ?on rank (?P<rank>\d+): (?P<found>\S+) vs (?P<wanted>\w+:\d+)",
            says="FSDP is given device_id {wanted}, and the model is on {found}.",
        ),
        Printed(r"[Aa]ll tensors must be on devices\[0\]", says="The model is on a different card from device_ids[0]."),
        Printed(
            r"You can't train a model that has been loaded in \S+ (?:or \S+ )?precision on a different device than the one you're training on",
            says="The model was loaded onto a different card from the one it is trained on.",
        ),
    ),
    yields_to=("device-ids-on-old-torch", "init-failure-swallowed"),
)


def check(run: Run) -> Iterator[Finding]:
    """Compare device_ids with the card of the parameters."""
    other = [each for each in wrap_calls.wraps(run) if _differs(each) and not wrap_calls.remedied(each, "device-ids")]
    if not other:
        return
    first = other[0]
    after: List[Failed] = []
    for wrapped in other:
        after += wrap_calls.later(run, wrapped, wrap_calls.TWO_DEVICES)
    lost = [*wrap_calls.failures(run, other), *after]
    yield RULE.found(
        ranks=wrap_calls.wrapping_ranks(other),
        verdict=say(
            "The parameters are on one card and device_ids names another on {who} ({pairs}), given by {giver}; DDP accepts it, "
            "but the first step fails.",
            who=named(wrap_calls.wrapping_ranks(other)),
            pairs=listed([_pair(wrapped) for wrapped in other[:4]], by="; "),
            giver=wrap_calls.giver(first),
        ),
        evidence=[
            *first_of([_shown(wrapped) for wrapped in other]),
            *[failed(failure) for failure in after[:1]],
        ],
        when=min(each.call.when for each in other),
        change=[*wrap_calls.without_ids(first), say("DDP then uses the card that the parameters are on.")],
        explains=lost,
        severity=ERROR if lost else WARNING,
    )


def _pair(wrapped: wrap_calls.Wrapped) -> Text:
    return say(
        "rank {rank}: {device}, device_ids {ids}",
        rank=wrapped.process.rank,
        device=wrapped.devices[0],
        ids=quoted(wrapped.ids),
    )


def _shown(wrapped: wrap_calls.Wrapped) -> Evidence:
    text = say("parameters on {device}, device_ids {ids}", device=wrapped.devices[0], ids=quoted(wrapped.ids))
    return shown(wrapped.call, text)


def _differs(wrapped: wrap_calls.Wrapped) -> bool:
    given = wrapped.call.begin.device_ids or []
    if wrapped.types == {"cpu"} or len(wrapped.devices) != 1 or len(given) != 1:
        return False
    if not isinstance(given[0], int):
        return False
    return number(wrapped.devices[0]) not in (None, given[0])
