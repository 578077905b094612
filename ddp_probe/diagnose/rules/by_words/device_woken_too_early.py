"""The device was initialised before the processes were started, or before each had chosen its own."""

from ddp_probe.diagnose.rule import Example, Printed, Rule
from ddp_probe.diagnose.rules.recorded import device_woken_too_early as recorded

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
        recorded.FORKED_WORKER_USES_CARD_THAT_ITS_PARENT,
        ranks=(0,),
    ),
    Example(
        "A worker dies of its memory.",
        recorded.WORKER_DIES_OF_ITS_MEMORY,
        answer="clear",
    ),
    Example(
        "Lightning looks before it forks.",
        recorded.LIGHTNING_LOOKS_BEFORE_IT_FORKS,
    ),
)
