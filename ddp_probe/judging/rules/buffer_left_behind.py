"""All parameters are on a card and a buffer is on the CPU: the broadcast of buffers fails, or the first step."""

import re
from itertools import chain
from typing import Iterator, List

from ddp_probe.judging import wrap_calls
from ddp_probe.judging.rule import HIGH, MEDIUM, Evidence, Finding, Printed, Rule, failed, first_of, shown
from ddp_probe.reading.model import Failed, Run
from ddp_probe.wording.text import say
from ddp_probe.wording.words import at, listed, named

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
    restart="no",  # The same lines leave the buffer behind again.
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
    strays = [wrapped for wrapped in wrap_calls.wraps(run) if "cpu" not in wrapped.types and _names(wrapped)]
    lost = list(chain.from_iterable(_died_of_it(run, stray) for stray in strays))
    if not lost:
        return
    first = strays[0]
    certain = any(re.search(wrap_calls.CPU_TENSOR, failure.text) for failure in lost)
    if certain:
        outcome = say("the exchange of buffers fails{where}", where=at(lost[0].site))
    else:
        outcome = say("the step that uses both fails{where}", where=at(lost[0].site))
    moved = wrap_calls.move_to_card(first, first.devices[0].partition(":")[0])
    yield RULE.found(
        ranks=wrap_calls.wrapping_ranks(strays),
        verdict=say(
            "Buffer {buffers} is on cpu while all {count} parameters are on {device} when DDP wraps the model on {who}; {outcome}.",
            buffers=listed(_names(first)[:3]),
            count=first.placement.parameters,
            device=first.devices[0],
            who=named(wrap_calls.wrapping_ranks(strays)),
            outcome=outcome,
        ),
        evidence=[*first_of([_shown(stray) for stray in strays]), failed(lost[0])],
        when=min(each.call.when for each in strays),
        change=[*moved, say("Or register the buffer before the model is moved.")],
        explains=lost,
        confidence=HIGH if certain else MEDIUM,
    )


def _shown(stray: wrap_calls.Wrapped) -> Evidence:
    text = say(
        "buffer {buffers} on cpu, parameters on {device}",
        buffers=listed(_names(stray)[:3]),
        device=stray.devices[0],
    )
    return shown(stray.call, text)


def _names(wrapped: wrap_calls.Wrapped) -> List[str]:
    return [leaf.name for leaf in wrapped.placement.buffers_off_majority if leaf.device == "cpu"]


def _died_of_it(run: Run, wrapped: wrap_calls.Wrapped) -> List[Failed]:
    at_once = [failure for failure in wrap_calls.failures(run, [wrapped]) if failure.fatal and re.search(wrap_calls.CPU_TENSOR, failure.text)]
    both = [failure for failure in wrap_calls.later(run, wrapped, wrap_calls.TWO_DEVICES) if re.search(r"\bcpu\b", failure.text)]
    return at_once or both or [failure for failure in wrap_calls.later(run, wrapped, wrap_calls.CPU_TENSOR) if re.search(_SYNC, failure.trail)]
