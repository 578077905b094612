"""All parameters are on a card and a buffer is on the CPU: the broadcast of buffers fails, or the first step."""

import re
from typing import Iterator, List

from ddp_probe.diagnose import _wrap_changes, _wraps
from ddp_probe.diagnose.rule import HIGH, MEDIUM, Example, Finding, Printed, Rule, failed, first_of, shown
from ddp_probe.diagnose.words import named
from ddp_probe.read.model import Failed, Run

_SYNC = r"_sync_module_states|_sync_params_and_buffers|_sync_params\b|_sync_buffers|_distributed_broadcast_coalesced|_broadcast_coalesced|_default_broadcast_coalesced"

RULE = Rule(
    id="DDP112",
    slug="buffer-left-behind",
    cause="buffer_on_cpu_with_nccl",
    title="A buffer of the model is on the CPU while its parameters are on a card.",
    symptom="DDP raises 'No backend type associated with device type cpu' or 'Tensors must be CUDA and dense' in _sync_module_states; or the first forward finds two devices, a card and cpu.",
    evidence="The placement written before the wrap has all parameters on a card and names buffers on cpu; the failure is DDP's exchange of buffers, or a forward that meets a card and cpu.",
    remedy="Register the buffer before model.to(device), or make it on the device: self.register_buffer('name', torch.ones(8, device=device)). A plain tensor attribute is not moved by to().",
    needs=("ddp.init",),
    printed=(
        Printed(
            _wraps.CPU_TENSOR,
            beside=_SYNC,
            unless="_verify_param",
            says="DDP exchanges parameters and buffers over the card's backend, and a buffer is on cpu.",
        ),
    ),
    yields_to=("model-never-moved", "device-ids-of-another-card", "init-failure-swallowed"),
)

EXAMPLES = (
    Example(
        "A buffer is registered after the move.",
        """
{"event":"ddp.init","phase":"begin","rank":0,"span":4,"site":{"file":"/train/03_buffer_left_behind.py","line":34,"function":"main"},"backend":"eccl","placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0","buffers":1,"buffer_devices":{"cpu":{"count":1}},"buffers_off_majority":[{"name":"scale","device":"cpu"}]},"last_move":"__main__.Scaled.to(gcu:0) at /train/03_buffer_left_behind.py:32"}
{"event":"ddp.init","phase":"end","rank":0,"span":4}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"Expected all tensors to be on the same device, but found at least two devices, gcu:0 and cpu!"},"exit_code":1,"uncaught":true}
""",
        ranks=(0,),
        job="03_buffer_left_behind",
    ),
    Example(
        "A buffer is on cpu and nothing fails.",
        """
{"event":"ddp.init","phase":"begin","rank":0,"span":4,"placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0","buffers":1,"buffer_devices":{"cpu":{"count":1}},"buffers_off_majority":[{"name":"scale","device":"cpu"}]}}
{"event":"ddp.init","phase":"end","rank":0,"span":4}
{"event":"process.end","rank":0}
""",
        answer="clear",
    ),
    Example(
        "The inputs are on cpu, the buffers are not.",
        """
{"event":"ddp.init","phase":"begin","rank":0,"span":4,"placement":{"parameters":4,"devices":{"gcu:0":{"count":4}},"majority":"gcu:0","buffers":1,"buffer_devices":{"gcu:0":{"count":1}}}}
{"event":"ddp.init","phase":"end","rank":0,"span":4}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"Expected all tensors to be on the same device, but found at least two devices, gcu:0 and cpu!"},"exit_code":1,"uncaught":true}
""",
        answer="clear",
    ),
    Example(
        "NCCL has no way to broadcast a buffer on cpu.",
        'Traceback (most recent call last):\n  File "/train/t.py", line 20, in main\n    model = DDP(model, device_ids=[rank])\n  File "/env/site-packages/torch/nn/parallel/distributed.py", line 801, in __init__\n    _sync_module_states(\n'
        '  File "/env/site-packages/torch/distributed/utils.py", line 286, in _sync_module_states\n    _sync_params_and_buffers(process_group, module_states, broadcast_bucket_size, src)\n  File "/env/site-packages/torch/distributed/utils.py", line 297, in _sync_params_and_buffers\n    dist._broadcast_coalesced(\nRuntimeError: No backend type associated with device type cpu\n',
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Look for buffers on cpu beside parameters on a card, and for the failure that this leads to."""
    strays = [each for each in _wraps.wraps(run) if "cpu" not in each.types and _names(each)]
    lost = [failure for each in strays for failure in _died_of_it(run, each)]
    if not lost:
        return
    first = strays[0]
    certain = any(re.search(_wraps.CPU_TENSOR, failure.text) for failure in lost)
    place = lost[0].site
    outcome = "the exchange of buffers fails" if certain else "the step that meets both fails"
    outcome += " at %s:%d" % (place.file, place.line) if place is not None else ""
    yield RULE.found(
        ranks=_wraps.ranks(strays),
        verdict="Buffer %s is on cpu while all %d parameters are on %s when DDP wraps the model on %s; %s."
        % (", ".join(_names(first)[:3]), first.placement.parameters, first.devices[0], named(_wraps.ranks(strays)), outcome),
        evidence=[
            *first_of([shown(each.call, "buffer %s on cpu, parameters on %s" % (", ".join(_names(each)[:3]), each.devices[0])) for each in strays]),
            failed(lost[0]),
        ],
        when=min(each.call.when for each in strays),
        change=[*_wrap_changes.moved(first, first.devices[0].partition(":")[0]), "Or register the buffer before the model is moved."],
        explains=lost,
        confidence=HIGH if certain else MEDIUM,
    )


def _names(wrapped: _wraps.Wrapped) -> List[str]:
    return [leaf.name for leaf in wrapped.placement.buffers_off_majority if leaf.device == "cpu"]


def _died_of_it(run: Run, wrapped: _wraps.Wrapped) -> List[Failed]:
    at_once = [failure for failure in _wraps.failures(run, [wrapped]) if failure.fatal and re.search(_wraps.CPU_TENSOR, failure.text)]
    both = [failure for failure in _wraps.later(run, wrapped, _wraps.TWO_DEVICES) if re.search(r"\bcpu\b", failure.text)]
    return at_once or both or [failure for failure in _wraps.later(run, wrapped, _wraps.CPU_TENSOR) if re.search(_SYNC, failure.trail)]
