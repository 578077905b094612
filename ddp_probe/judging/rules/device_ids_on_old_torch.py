"""device_ids name an accelerator other than CUDA, and this torch asks CUDA for a stream with that number."""

import re
from typing import Iterator, List

from ddp_probe.judging import wrap_calls
from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, failed, first_of, shown
from ddp_probe.reading.model import Failed, Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named, quoted

_STREAM = r"list index out of range"

RULE = Rule(
    id="DDP116",
    slug="device-ids-on-old-torch",
    cause="framework_version_incompat",
    title="This torch supports device_ids on CUDA only: its first forward asks CUDA for a stream with that number.",
    symptom="The wrap succeeds and the first forward fails with 'IndexError: list index out of range' in _get_stream.",
    evidence=(
        "The ddp.init event has device_ids and parameters on an accelerator other than CUDA; the failure comes from "
        "torch.nn.parallel._functions._get_stream. torch 2.1 and newer ask the device's own module."
    ),
    remedy="Leave device_ids out: DistributedDataParallel(model), with the model already on its card; or use torch 2.1 or newer.",
    restart="no",  # The argument and this version of torch stay.
    needs=("ddp.init",),
    fix="device-ids",
    printed=(
        Printed(r"IndexError: " + _STREAM, beside=r" in (?:\w+\.)*_get_stream", says="DDP asks CUDA for a stream on a card that is not a CUDA card."),
    ),
    yields_to=("init-failure-swallowed",),
)


def check(run: Run) -> Iterator[Finding]:
    """Find the failure after a wrap with device_ids on a card that is not a CUDA card."""
    given = [each for each in wrap_calls.wraps(run) if each.ids and not each.types & {"cpu", "cuda"}]
    lost: List[Failed] = []
    for wrapped in given:
        lost += _of_stream(run, wrapped)
    if not lost:
        return
    first = next(each for each in given if _of_stream(run, each))
    version = first.process.started.versions.get("torch", "1.x")
    alike = [each for each in given if each.process.started.versions.get("torch", "1.x") == version]
    yield RULE.found(
        ranks=wrap_calls.wrapping_ranks(alike),
        verdict=say(
            "torch {version} supports device_ids on CUDA only; on {who} DDP gets {ids} from {giver} for a model on {device}, and "
            "the first forward fails in _get_stream.",
            version=version,
            who=named(wrap_calls.wrapping_ranks(alike)),
            ids=wrap_calls.all_ids(alike),
            giver=wrap_calls.giver(first),
            device=first.devices[0],
        ),
        evidence=[*first_of([_shown(wrapped) for wrapped in alike]), failed(lost[0])],
        when=min(each.call.when for each in alike),
        change=wrap_calls.without_ids(first),
        explains=lost,
    )


def _shown(wrapped: wrap_calls.Wrapped) -> Evidence:
    text = say("parameters on {device}, device_ids {ids}", device=wrapped.devices[0], ids=quoted(wrapped.ids))
    return shown(wrapped.call, text)


def _of_stream(run: Run, wrapped: wrap_calls.Wrapped) -> List[Failed]:
    died = wrap_calls.later(run, wrapped, _STREAM)
    return [failure for failure in died if any(re.search(r"\b_get_stream$", frame.function) for frame in failure.frames[-3:])]
