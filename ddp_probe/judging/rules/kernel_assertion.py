"""A kernel on the device was given an index that is out of range: the job's own data, whatever NCCL says afterwards."""

from ddp_probe.judging.rule import Printed, Rule

RULE = Rule(
    id="DDP659",
    slug="kernel-assertion",
    cause="own_exception",
    title="A kernel on the device was given a value that is out of range.",
    symptom="'CUDA error: device-side assert triggered', with 'Assertion `t >= 0 && t < n_classes` failed' above it, and NCCL errors after it.",
    evidence="The assertion names the kernel. The traceback is of a later call, because kernels run asynchronously.",
    remedy=(
        "Check the labels against the number of classes, and indices against the size of the embedding. Run that batch on the CPU, or with "
        "CUDA_LAUNCH_BLOCKING=1, to see the line that started the kernel. The errors of NCCL and of other ranks follow from it."
    ),
    restart="no",  # The same value comes from the same data.
    needs=("process.end",),
    printed=(
        Printed(
            r"(?P<kernel>\w+)\.cuh?:\d+:[^\n]*\bAssertion `(?P<condition>[^`'\n]{1,120})[`'] failed",
            beside=r"device-side assert triggered|Assert(?:ion)?Error|unhandled cuda error",
            says="A kernel of {kernel} was given a value that is out of range: {condition} does not hold.",
        ),
        Printed(r"(?:CUDA|HIP) error: device-side assert triggered", says="A kernel on the device was given a value that is out of range."),
    ),
)
