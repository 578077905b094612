"""A collective of the job itself got a tensor on the CPU, and the backend serves cards only."""

from typing import Iterator

from ddp_probe.diagnose import _wraps
from ddp_probe.diagnose.printed import by_text
from ddp_probe.diagnose.rule import Example, Finding, Printed, Rule
from ddp_probe.read.model import Run

_OF_DDP = r"_sync_module_states|_sync_params|_sync_buffers|_broadcast_coalesced|_verify_param|_verify_model_across_ranks"

RULE = Rule(
    id="DDP114",
    slug="cpu-tensor-in-collective",
    cause="cpu_tensor_in_nccl_collective",
    title="A tensor on the CPU is given to a collective of a backend that serves cards only.",
    symptom="all_reduce, broadcast or all_gather raises 'No backend type associated with device type cpu' or 'Tensors must be CUDA and dense'.",
    evidence="The exception comes from a collective that the job or a library calls, not from DDP's own exchange of parameters (model-never-moved) or buffers (buffer-left-behind).",
    remedy="Send the tensor to this rank's card first: tensor = tensor.to(device), or init_process_group('cpu:gloo,cuda:nccl') where both kinds are needed.",
    printed=(
        Printed(_wraps.CPU_TENSOR, unless=_OF_DDP),
        Printed(r"input and output elements have to be cuda dense Tensors"),
    ),
    yields_to=("model-never-moved", "buffer-left-behind", "init-failure-swallowed"),
)

EXAMPLES = (
    Example(
        "A counter on the CPU is summed over NCCL.",
        """
{"event":"ddp.init","phase":"begin","rank":0,"span":4,"backend":"nccl","placement":{"parameters":4,"devices":{"cuda:0":{"count":4}},"majority":"cuda:0"}}
{"event":"ddp.init","phase":"end","rank":0,"span":4}
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"No backend type associated with device type cpu","frames":[{"file":"/train/t.py","line":31,"function":"main"},{"file":"/env/site-packages/torch/distributed/distributed_c10d.py","line":2501,"function":"all_reduce"}]},"exit_code":1,"uncaught":true}
""",
        ranks=(0,),
    ),
    Example(
        "The same words from DDP's exchange of buffers.",
        """
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"No backend type associated with device type cpu","frames":[{"file":"/train/t.py","line":31,"function":"main"},{"file":"/env/site-packages/torch/distributed/utils.py","line":286,"function":"_sync_module_states"}]},"exit_code":1,"uncaught":true}
""",
        answer="clear",
    ),
    Example(
        "torch 1.x in the job's own reduce.",
        'Traceback (most recent call last):\n  File "/train/t.py", line 31, in average\n    dist.all_reduce(total)\n  File "/env/site-packages/torch/distributed/distributed_c10d.py", line 1322, in all_reduce\n    work = default_pg.allreduce([tensor], opts)\nRuntimeError: Tensors must be CUDA and dense\n',
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """The exception and its frames say it."""
    return by_text(RULE, run)
