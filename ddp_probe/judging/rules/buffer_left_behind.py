"""All parameters are on a card and a buffer is on the CPU: the broadcast of buffers fails, or the first step."""

import re
from typing import Iterator, List

from ddp_probe.judging import wrap_calls
from ddp_probe.judging.rule import HIGH, MEDIUM, Finding, Printed, Rule, failed, first_of, shown
from ddp_probe.reading.model import Failed, Run
from ddp_probe.wording.words import at, named

_SYNC = (
    r"_sync_module_states|_sync_params_and_buffers|_sync_params\b|_sync_buffers|_distributed_broadcast_coalesced|_broadcast_coalesced"
    r"|_default_broadcast_coalesced"
)

RULE = Rule(
    id="DDP112",
    slug="buffer-left-behind",
    cause="buffer_on_cpu_with_nccl",
    title="A buffer of the model is on the CPU while its parameters are on a card.",
    symptom=(
        "DDP raises 'No backend type associated with device type cpu' or 'Tensors must be CUDA and dense' in _sync_module_states; or the first "
        "forward fails because tensors are on two devices, a card and cpu."
    ),
    evidence=(
        "The placement recorded before the wrap shows all parameters on a card and names buffers on cpu; then DDP's exchange of buffers fails, "
        "or a forward that gets tensors on both a card and cpu."
    ),
    remedy=(
        "Register the buffer before model.to(device), or make it on the device: self.register_buffer('name', torch.ones(8, device=device)). "
        "to() does not move a plain tensor attribute."
    ),
    needs=("ddp.init",),
    printed=(
        Printed(
            wrap_calls.CPU_TENSOR,
            beside=_SYNC,
            unless="_verify_param",
            says="DDP exchanges parameters and buffers over the card's backend, and a buffer is on cpu.",
        ),
    ),
    yields_to=("model-never-moved", "device-ids-of-another-card", "init-failure-swallowed"),
)


def check(run: Run) -> Iterator[Finding]:
    """Find buffers on cpu beside parameters on a card, and the failure that they lead to."""
    strays = [each for each in wrap_calls.wraps(run) if "cpu" not in each.types and _names(each)]
    lost = [failure for each in strays for failure in _died_of_it(run, each)]
    if not lost:
        return
    first = strays[0]
    certain = any(re.search(wrap_calls.CPU_TENSOR, failure.text) for failure in lost)
    place = lost[0].site
    outcome = "the exchange of buffers fails" if certain else "the step that uses both fails"
    outcome += at(place)
    yield RULE.found(
        ranks=wrap_calls.wrapping_ranks(strays),
        verdict="Buffer %s is on cpu while all %d parameters are on %s when DDP wraps the model on %s; %s."
        % (", ".join(_names(first)[:3]), first.placement.parameters, first.devices[0], named(wrap_calls.wrapping_ranks(strays)), outcome),
        evidence=[
            *first_of([shown(each.call, "buffer %s on cpu, parameters on %s" % (", ".join(_names(each)[:3]), each.devices[0])) for each in strays]),
            failed(lost[0]),
        ],
        when=min(each.call.when for each in strays),
        change=[*wrap_calls.move_to_card(first, first.devices[0].partition(":")[0]), "Or register the buffer before the model is moved."],
        explains=lost,
        confidence=HIGH if certain else MEDIUM,
    )


def _names(wrapped: wrap_calls.Wrapped) -> List[str]:
    return [leaf.name for leaf in wrapped.placement.buffers_off_majority if leaf.device == "cpu"]


def _died_of_it(run: Run, wrapped: wrap_calls.Wrapped) -> List[Failed]:
    at_once = [failure for failure in wrap_calls.failures(run, [wrapped]) if failure.fatal and re.search(wrap_calls.CPU_TENSOR, failure.text)]
    both = [failure for failure in wrap_calls.later(run, wrapped, wrap_calls.TWO_DEVICES) if re.search(r"\bcpu\b", failure.text)]
    return at_once or both or [failure for failure in wrap_calls.later(run, wrapped, wrap_calls.CPU_TENSOR) if re.search(_SYNC, failure.trail)]
