"""The device was initialised before the processes were started, or before each one chose its card."""

from ddp_probe.judging.rule import Printed, Rule
from ddp_probe.judging.vendor_words import CARDS

RULE = Rule(
    id="DDP217",
    slug="device-woken-too-early",
    cause="device_init_before_set_device",
    title="The accelerator was initialised before the processes were forked, or before this rank chose its card.",
    symptom=(
        "'Cannot re-initialize CUDA in forked subprocess', \"Lightning can't create new processes if CUDA is already initialized\", "
        "'Runtime is already initialized. Do not use the XLA device before calling xmp.spawn'."
    ),
    evidence=(
        "The runtime says so in the child, or the framework does before it forks. An import or an earlier line initialised the device: "
        "torch.cuda.*, .cuda(), or device_count() in some plugins."
    ),
    remedy=(
        "Use the device only in the process that needs it. Do not call .cuda() or torch.cuda.* at import or before the launch, and call "
        "set_device(local_rank) first in each rank. In DataLoader workers, create no tensors on the device, or set "
        "multiprocessing_context='spawn'."
    ),
    restart="no",  # The order of the calls stands in the code.
    printed=(
        Printed(
            r"Cannot re-initialize (?P<kind>CUDA|%s) in forked subprocess" % CARDS,  # torch's words, which the plugins took over.
            says="{kind} was initialised before this process was forked.",
        ),
        Printed(
            r"(?:CUDA error|cuda runtime error \(3\) ): initialization error",
            beside=r"_worker_loop|DataLoader worker|forked|\bfork\b|popen_fork",
            says="CUDA was initialised before this process was forked, as a worker of the DataLoader is.",
        ),
        Printed(
            r"can.t create new processes if CUDA is already initialized"
            r"|CUDA has been initialized before the `notebook_launcher` could create a forked subprocess"
            r"|avoid running any instruction using `torch\.cuda` in any cell before calling"
        ),
        Printed(
            r"Runtime is already initialized\. Do not use the XLA device|Cannot replicate if number of devices \(\d+\) is different from"
            r"|should only be initialized inside your training function"
        ),
    ),
    yields_to=("init-failure-swallowed",),
)
