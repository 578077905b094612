"""The model is on the CPU when DDP wraps it, although this rank has a card: it was never moved."""

import re
from typing import Iterator

from ddp_probe.judging import wrap_calls
from ddp_probe.judging.rule import ERROR, WARNING, Finding, Printed, Rule, first_of, shown
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named

RULE = Rule(
    id="DDP101",
    slug="model-never-moved",
    cause="model_on_cpu_at_ddp_wrap",
    title="The model is on the CPU when DDP wraps it: it was not moved to this rank's card.",
    symptom=(
        "DDP raises 'device_ids and output_device arguments only work with … module parameters {device(type='cpu')}', or its first collective says "
        "that there is no backend for cpu; or the job trains on the CPU without a message."
    ),
    evidence=(
        "The placement recorded before the wrap shows every parameter on cpu although the host has an accelerator. If there is none, it is a "
        "CPU run: see device-ids-on-cpu. If mmengine chose the CPU, see mmengine-does-not-know-card."
    ),
    remedy=(
        "Move the model before the wrap: model.to(torch.device('cuda', local_rank)), or the accelerator's own device type. On a CPU run, "
        "leave device_ids out instead."
    ),
    restart="no",  # The same lines leave the model on the CPU again.
    needs=("ddp.init",),
    fix="move-model",
    printed=(
        Printed(
            wrap_calls.ON_CPU,
            says=(
                "All parameters are on cpu when DDP wraps the model with device_ids: it was not moved to its card, or this is a CPU run, "
                "which needs device_ids=None."
            ),
        ),
        Printed(
            wrap_calls.CPU_TENSOR,
            beside=r"in _verify_param_shape_across_processes|in _verify_model_across_ranks|_verify_params_across_processes",
            says="DDP compares the parameters of all ranks over the card's backend, and they are on cpu.",
        ),
        Printed(
            r"module must have its parameters and buffers on device \S+ \(device_ids\[0\]\) but found one of them on device: cpu",
            says="A parameter or buffer is on cpu when the model is wrapped.",
        ),
        Printed(
            wrap_calls.CUT_OFF,
            says=(
                "DDP refuses device_ids: the model is not on a single card, and most often it is still on cpu. The rest of the message, "
                "which names the devices, is missing."
            ),
        ),
        Printed(
            r"FSDP-managed module unexpectedly has parameters on cpu|Expects tensor to be on the compute device (?P<wanted>\w+:\d+), was on cpu",
            says="FSDP finds parameters on cpu.",
        ),
        Printed(
            r"[Mm]odule has CPU parameters[^\n]{0,40}sync_module_states=True",
            says="FSDP should send the model from one rank to the others, but its parameters are on cpu: move it, or give FSDP its device_id.",
        ),
        Printed(
            r"SyncBatchNorm expected input tensor to be on (?:GPU|cuda)|" + wrap_calls.ON_CARDS_ALONE,
            says="A SyncBatchNorm layer runs on the CPU.",
        ),
    ),
    yields_to=("device-ids-on-cpu", "mmengine-does-not-know-card", "init-failure-swallowed"),
)

_NORM_ON_CPU = say(
    "On a CPU run, leave SyncBatchNorm.convert_sync_batchnorm() out: BatchNorm works there, on each rank with the statistics of its own batch."
)


def check(run: Run) -> Iterator[Finding]:
    """Find models on the CPU of a host with a card, if mmengine did not choose the CPU."""
    left = wrap_calls.on_cpu(run, by_mmengine=False)
    if not left.found:
        return
    first = left.found[0]
    card = wrap_calls.card(first.process, first.call)
    there = wrap_calls.seen(card) if card else say("the backend is {backend}", backend=first.call.begin.backend)
    moves = wrap_calls.moves(first)
    story = say("nothing has moved it")
    if moves:
        story = say("its last move was {move}", move=wrap_calls.move_text(moves[-1]))
    who, parameters = named(wrap_calls.wrapping_ranks(left.found)), first.placement.parameters
    is_norm = any(re.search(wrap_calls.ON_CARDS_ALONE, failure.text) for failure in left.explains)
    if is_norm:
        verdict = say(
            "{who:capital}: DDP refuses a model with SyncBatchNorm whose {count} parameters are all on cpu; {story}.",
            who=who,
            count=parameters,
            story=story,
        )
    else:
        verdict = say(
            "{who:capital}: DDP gets a model whose {count} parameters are all on cpu, with device_ids {ids}, although {there}; {story}.",
            who=who,
            count=parameters,
            ids=wrap_calls.all_ids(left.found) or "None",
            there=there,
            story=story,
        )
    on_cpu = is_norm and not card
    device_type = card.device_type if card else "cuda"
    change = [_NORM_ON_CPU] if on_cpu else wrap_calls.move_to_card(first, device_type)
    evidence = []
    for wrapped in left.found:
        count, ids = wrapped.placement.parameters, wrapped.ids or "None"
        evidence.append(shown(wrapped.call, say("{count} parameters on cpu, device_ids {ids}", count=count, ids=ids)))
    yield RULE.found(
        ranks=wrap_calls.wrapping_ranks(left.found),
        verdict=verdict,
        evidence=first_of(evidence),
        when=min(each.call.when for each in left.found),
        change=change,
        fix="" if on_cpu else None,
        explains=left.explains,
        severity=ERROR if left.ended else WARNING,
    )
