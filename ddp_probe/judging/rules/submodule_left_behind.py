"""A part of the model stayed on the CPU when the rest was moved, was made after the move, or was moved back."""

from typing import Iterator, Tuple

from ddp_probe.judging import wrap_calls
from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, shown
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, named

RULE = Rule(
    id="DDP104",
    slug="submodule-left-behind",
    cause="mixed_cpu_cuda_params",
    title="Part of the model is on the CPU and the rest on a card when DDP wraps it.",
    symptom="DDP raises 'input module must be on the same type of devices', or 'device_ids … module parameters {cuda, cpu}'.",
    evidence=(
        "The placement recorded before the wrap names the parameters on cpu; the module.move events before it show whether they were never "
        "moved, made after the whole model was moved, or moved back. If all are on cpu, see model-never-moved; if only a buffer is, "
        "buffer-left-behind."
    ),
    remedy="Move the whole model once, after its last layer is made and before the wrap: model.to(device).",
    restart="no",  # The same lines leave that part behind again.
    needs=("ddp.init",),
    printed=(
        Printed(
            r"input\s+module must be on\s+the same type of devices, but input module parameters locate in\s+\{(?=[^}]*'cpu')(?P<devices>[^}]*)\}",
            says="When DDP wraps the model its parameters are on {devices}.",
        ),
        Printed(
            r"Different devices for the bucket and the param, cannot proceed: (?P<devices>\S+ - cpu|cpu - \S+)",
            says="A parameter and the bucket that it belongs to are on {devices}.",
        ),
        Printed(
            r"To support a module with both CPU and GPU params, please pass in device_id",
            says="Some parameters given to FSDP are on cpu, and others on a card.",
        ),
        Printed(
            wrap_calls.DEVICE_IDS + r"\{(?=[^}]*type='cpu')(?=[^}]*index=)(?P<devices>[^}]*)\}",
            says="When DDP wraps the model its parameters are on {devices}: a part was converted after the move, or never moved.",
        ),
    ),
    yields_to=("init-failure-swallowed",),
)


def check(run: Run) -> Iterator[Finding]:
    """Look at each rank's placement before the wrap."""
    lost = wrap_calls.refused(run, [each for each in wrap_calls.wraps(run) if "cpu" in each.types and len(each.types) > 1])
    if not lost:
        return
    first = lost[0]
    story, before = _story(first)
    off = [leaf for leaf in first.placement.off_majority if leaf.device == "cpu"] or first.placement.first
    count, rest = first.placement.devices["cpu"].count, next(device for device in first.devices if device != "cpu")
    names = [*[leaf.name for leaf in off[:3]], *(["…"] if count > 3 else [])]
    wraps = [shown(wrapped.call, say("parameters on {devices}", devices=listed(list(wrapped.devices)))) for wrapped in lost[:4]]
    yield RULE.found(
        ranks=wrap_calls.wrapping_ranks(lost),
        verdict=say(
            "{count} of {all} parameters ({names}) are on cpu while the others are on {device} when DDP wraps the model on {who}: {story}.",
            count=count,
            all=first.placement.parameters,
            names=listed(names),
            device=rest,
            who=named(wrap_calls.wrapping_ranks(lost)),
            story=story,
        ),
        evidence=[*before, *wraps],
        when=min(wrapped.call.when for wrapped in lost),
        change=wrap_calls.move_to_card(first, rest.partition(":")[0]),
        explains=wrap_calls.failures(run, lost),
    )


def _story(wrapped: wrap_calls.Wrapped) -> Tuple[Text, Tuple[Evidence, ...]]:
    """Return how it happened (moved back, converted after the move, or left behind), and the move that shows it."""
    calls = wrap_calls.moves(wrapped)
    if calls and calls[-1].begin.destination == "cpu":
        back = wrap_calls.move_text(calls[-1])
        return say("{call} moved it back", call=back), (shown(calls[-1], back),)
    whole = [call for call in calls if call.begin.model == wrapped.placement.model and call.end is not None and "cpu" not in call.end.devices]
    if whole:
        count = sum(whole[-1].end.devices.values()) if whole[-1].end is not None else 0
        story = say("it was made after {call}, which moved {count}", call=wrap_calls.move_text(whole[-1]), count=count)
        return story, (shown(whole[-1], say("the whole model, {count} parameters, was moved before", count=count)),)
    last = tuple(shown(call, wrap_calls.move_text(call)) for call in calls[-1:])
    return say("nothing has moved that part"), last
