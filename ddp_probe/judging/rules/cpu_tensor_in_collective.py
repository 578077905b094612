"""A collective of the job itself got a tensor on the CPU, and its backend serves only cards."""

from ddp_probe.judging import wrap_calls
from ddp_probe.judging.rule import Printed, Rule

_OF_DDP = r"_sync_module_states|_sync_params|_sync_buffers|_broadcast_coalesced|_verify_param|_verify_model_across_ranks"

RULE = Rule(
    id="DDP114",
    slug="cpu-tensor-in-collective",
    cause="cpu_tensor_in_nccl_collective",
    title="A CPU tensor is passed to a collective whose backend supports only cards.",
    symptom="all_reduce, broadcast or all_gather raises 'No backend type associated with device type cpu' or 'Tensors must be CUDA and dense'.",
    evidence=(
        "The exception comes from a collective that the job or a library calls, not from DDP's own exchange of parameters (model-never-moved) or "
        "buffers (buffer-left-behind)."
    ),
    remedy=(
        "Move the tensor to this rank's card first: tensor = tensor.to(device). If you need collectives on both, use "
        "init_process_group('cpu:gloo,cuda:nccl')."
    ),
    restart="no",  # The same call gets the same tensor again.
    printed=(
        Printed(wrap_calls.CPU_TENSOR, unless=_OF_DDP),
        Printed(r"input and output elements have to be cuda dense Tensors"),
        Printed(
            r"One or more of the tensors passed to (?:\w+\.)*(?P<operation>\w+) were not on the (?P<kind>\w+) while",
            says="A tensor that the job passes to accelerate's {operation} is not on the {kind}.",
        ),
    ),
    yields_to=("model-never-moved", "buffer-left-behind", "init-failure-swallowed"),
)
