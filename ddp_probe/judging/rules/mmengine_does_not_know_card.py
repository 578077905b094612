"""mmengine's get_device() does not know the accelerator and returns cpu, so its runner keeps the model there."""

from typing import Iterator, List, Optional

from ddp_probe.judging import change, vendor_words, wrap_calls
from ddp_probe.judging.rule import ERROR, WARNING, Evidence, Finding, Printed, Rule, shown
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import joined, say
from ddp_probe.wording.words import named, quoted

_VENDORS = vendor_words.SPOKEN_OF + r"|\b(?:torch_dtu|topsrider)\b"  # and older names of Enflame's

RULE = Rule(
    id="DDP102",
    slug="mmengine-does-not-know-card",
    cause="model_on_cpu_at_ddp_wrap",
    title="mmengine's get_device() returns cpu although the host has an accelerator, so Runner.wrap_model leaves the model on the CPU.",
    symptom=(
        "Runner fails in wrap_model with 'device_ids and output_device arguments only work with … module parameters {device(type='cpu')}'; "
        "with device_ids=None it trains on the CPU without a message."
    ),
    evidence=(
        "The mmengine.wrap_model event says that get_device() is cpu, and why, and lists the accelerators of the host. If there is none, "
        "it is a CPU run: see device-ids-on-cpu."
    ),
    remedy=(
        "Before the Runner is made, and after the accelerator's plugin is imported: import mmengine.device.utils; mmengine.device.utils.DEVICE = "
        "'gcu' (the accelerator's name in torch)."
    ),
    restart="no",  # get_device() answers the same again.
    needs=("mmengine.wrap_model", "ddp.init"),
    fix="mmengine-device",
    printed=(
        Printed(
            wrap_calls.ON_CPU,
            beside=r"(?=.*\bin wrap_model\b).*(?:%s)" % _VENDORS,
            says="mmengine wraps a model on cpu with device_ids, and the log mentions an accelerator.",
        ),
    ),
    yields_to=("init-failure-swallowed",),
)


def check(run: Run) -> Iterator[Finding]:
    """Find models that wrap_model moved to get_device(), which was the CPU on a host with a card."""
    left = wrap_calls.on_cpu(run, by_mmengine=True)
    if not left.found:
        return
    first = left.found[0]
    outer, card = wrap_calls.runner(first), wrap_calls.card(first.process, first.call)
    assert outer is not None
    there = wrap_calls.seen(card) if card else say("the backend is {backend}", backend=first.call.begin.backend)
    returned = say(
        "get_device() of mmengine returns cpu on {who} although {there}, so wrap_model keeps all {count} parameters there, with device_ids {ids}.",
        who=named(wrap_calls.wrapping_ranks(left.found)),
        there=there,
        count=first.placement.parameters,
        ids=wrap_calls.all_ids(left.found) or "None",
    )
    yield RULE.found(
        ranks=wrap_calls.wrapping_ranks(left.found),
        verdict=joined([returned, quoted(outer.begin.get_device_because)]),
        evidence=[*_answers(left.found[:2]), *_placements(left.found[:2])],
        when=min(wrapped.call.when for wrapped in left.found),
        change=_told(outer, card),
        explains=left.explains,
        severity=ERROR if left.ended else WARNING,
    )


def _answers(wraps: List[wrap_calls.Wrapped]) -> Iterator[Evidence]:
    """Yield what get_device() answered, and why."""
    for wrapped in wraps:
        call = wrap_calls.runner(wrapped)
        if call is not None:
            because = quoted(call.begin.get_device_because)
            yield shown(call, say("get_device() is cpu: {because}", because=because))


def _placements(wraps: List[wrap_calls.Wrapped]) -> Iterator[Evidence]:
    """Yield where the parameters were when DDP got the model."""
    for wrapped in wraps:
        count, ids = wrapped.placement.parameters, wrapped.ids or "None"
        yield shown(wrapped.call, say("{count} parameters on cpu, device_ids {ids}", count=count, ids=ids))


def _told(outer: "LoggedCall[schema.WrapModel]", card: Optional[schema.Card]) -> change.Change:
    line = "mmengine.device.utils.DEVICE = '%s'" % (card.device_type if card is not None else "gcu")
    return [change.Lines(outer.site, (line,), ("mmengine.device.utils",)), say("Import the accelerator's plugin before that.")]
