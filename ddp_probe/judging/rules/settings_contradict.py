"""Two settings of the job contradict each other, and the library refuses to start with both."""

from ddp_probe.judging.rule import Printed, Rule

RULE = Rule(
    id="DDP429",
    slug="settings-contradict",
    cause="settings_contradict",
    title="Two settings of the job contradict each other.",
    symptom=(
        "'Please correct the following DeepSpeed config values that mismatch TrainingArguments values', 'DeepSpeed Zero-3 is not "
        "compatible with', or "
        "'together with … is not possible', on all ranks at the start of the job."
    ),
    evidence="The library's own message, which names both settings. No rank and no card is at fault.",
    remedy=(
        "Remove one of the two settings. In a DeepSpeed file write 'auto' for each value that the Trainer has as well. With ZeRO-3 load the "
        "model without device_map and without low_cpu_mem_usage: it is divided while it is loaded."
    ),
    restart="no",  # Both settings stay.
    needs=("process.end",),
    printed=(
        Printed(
            r"correct the following DeepSpeed config values that mismatch\s{1,3}TrainingArguments values:\s{1,6}- (?P<first>[^\n]{1,160})",
            says="The DeepSpeed file and TrainingArguments differ, first in {first}.",
            ranks=False,
        ),
        Printed(
            r"correct the following DeepSpeed config values that mismatch\s{1,3}TrainingArguments values",
            says="The DeepSpeed file and TrainingArguments differ.",
            ranks=False,
        ),
        Printed(
            r"DeepSpeed Zero-3 is not compatible with [^\n]{0,80}(?:device_map|low_cpu_mem_usage)",
            says="ZeRO-3 divides the model itself, and device_map or low_cpu_mem_usage would place it as well.",
            ranks=False,
        ),
        Printed(
            r"Using --fsdp xxx together with --deepspeed is not possible",
            says="FSDP and DeepSpeed are both requested.",
            ranks=False,
        ),
        Printed(
            r"You can't use batches of different size with `dispatch_batches=True`",
            says=(
                "accelerate joins the batches of all ranks to send them out (dispatch_batches), and they have different sizes: pad them to one "
                "length, or set dispatch_batches=False."
            ),
            ranks=False,
        ),
        Printed(
            r"Sizes of tensors must match except in dimension 0",
            beside=r"\bin _fetch_batches\b",
            says=(
                "accelerate joins the batches of all ranks to send them out (dispatch_batches), and they have different sizes: pad them to one "
                "length, or set dispatch_batches=False."
            ),
            ranks=False,
        ),
        Printed(
            r"You can't use same `Accelerator\(\)` instance with multiple models when using (?P<what>DeepSpeed|Megatron-LM)",
            says="One Accelerator prepares several models, and with {what} each needs its own.",
            ranks=False,
        ),
        Printed(
            r"You cannot specify an? (?P<what>optimizer|scheduler) in the config file and in the code at the same time",
            says="The {what} is both in the DeepSpeed file and in the code.",
            ranks=False,
        ),
        Printed(
            r"When using FSDP2, a model and optimizer must be passed together to `Accelerator\.prepare\(\)`"
            r"|Passing `optimizers` is not allowed if PyTorch FSDP is enabled|A parameter in the optimizer couldn't be switched to "
            r"its sharded version"
            r"|The optimizer does not seem to reference any FSDP parameters",
            says="FSDP replaces the parameters, but the optimizer was created for the original ones.",
            ranks=False,
        ),
        Printed(
            r"Error: Expected (?P<module>[\w.]{0,200}) to NOT be FullyShardedDataParallel if using an `auto_wrap_policy`",
            says=("A part of the model is already wrapped by FSDP ({module}), and would be wrapped again: the program and its launcher both do it."),
            ranks=False,
        ),
        Printed(
            r"Your model contains `DTensor` parameters, which is incompatible with DDP",
            says="The model was divided when it was loaded (device_map='auto' under torchrun), but DDP needs it whole on each rank.",
            ranks=False,
        ),
        Printed(
            r"no_sync context manager is incompatible with gradient partitioning logic of ZeRO stage (?P<stage>\d)",
            says="no_sync holds gradients back, but ZeRO stage {stage} divides them after each backward pass.",
            ranks=False,
        ),
        Printed(
            r"ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism|AssertionError: MoE not supported with Stage 3",
            says="The ZeRO stage is not compatible with the way in which the model is divided.",
            ranks=False,
        ),
        Printed(
            r"requires? setting the environment variable\s{1,3}\"?(?P<name>CUDA_DEVICE_MAX_CONNECTIONS) to (?P<value>\d+)",
            says="This way to divide the model needs {name}={value} in the environment of each rank.",
            ranks=False,
        ),
    ),
)
