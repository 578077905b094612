"""The device was initialised before the processes were started, or before each had chosen its own."""

from typing import Iterator

from ddp_probe.diagnose.printed import by_text
from ddp_probe.diagnose.rule import Example, Finding, Printed, Rule
from ddp_probe.read.model import Run

RULE = Rule(
    id="DDP217",
    slug="device-woken-too-early",
    cause="device_init_before_set_device",
    title="The accelerator was initialised before the processes were forked, or before this rank had chosen its card.",
    symptom="'Cannot re-initialize CUDA in forked subprocess', \"Lightning can't create new processes if CUDA is already initialized\", 'Runtime is already initialized. Do not use the XLA device before calling xmp.spawn'.",
    evidence="The runtime says so in the child, or the framework before it forks. What woke the device is an import or a line before: torch.cuda.*, .cuda(), device_count() of some plugins.",
    remedy="Touch the device only in the process that uses it: no .cuda() and no torch.cuda.* at import or before the launch, set_device(local_rank) first in each rank; in DataLoader workers no device tensors, or multiprocessing_context='spawn'.",
    printed=(
        Printed(
            r"Cannot re-initialize (?P<kind>CUDA|NPU|MLU|MUSA|XPU|HPU|GCU|DIPU) in forked subprocess",
            says="{kind} was initialised before this process was forked.",
        ),
        Printed(
            r"can.t create new processes if CUDA is already initialized|CUDA has been initialized before the `notebook_launcher` could create a forked subprocess|avoid running any instruction using `torch\.cuda` in any cell before calling"
        ),
        Printed(
            r"Runtime is already initialized\. Do not use the XLA device|Cannot replicate if number of devices \(\d+\) is different from|should only be initialized inside your training function"
        ),
    ),
    yields_to=("init-failure-swallowed",),
)

EXAMPLES = (
    Example(
        "A forked worker uses the card that its parent has woken.",
        """
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method","frames":[{"file":"/train/t.py","line":31,"function":"worker"}]},"exit_code":1,"uncaught":true}
""",
        ranks=(0,),
    ),
    Example(
        "A worker dies of its memory.",
        """
{"event":"process.end","rank":0,"failure":{"type":"RuntimeError","message":"DataLoader worker (pid 4711) is killed by signal: Bus error.","frames":[{"file":"/train/t.py","line":31,"function":"main"}]},"exit_code":1,"uncaught":true}
""",
        answer="clear",
    ),
    Example(
        "Lightning looks before it forks.",
        "RuntimeError: Lightning can't create new processes if CUDA is already initialized. Did you manually call `torch.cuda.*` functions, have moved the model to the device, or allocated memory on the GPU any other way? Please remove any such calls, or change the selected strategy.\n",
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """The runtime or the framework says it."""
    return by_text(RULE, run)
