"""DDP sends its buffers again in a second forward, over those that the first one still needs for its backward."""

from ddp_probe.judging.rule import Printed, Rule

_CHANGED = r"modified\s{1,3}by an inplace operation:\s{1,3}\[torch\.(?:\w+\.)?(?:Float|Half|BFloat16|Double|Long)(?:Tensor|Type) \["
_ALONE = r"\b(?:one|single) (?:gpu|GPU|card) (?:too|as well|also)"
_NOT_ALONE = r"(?i:without (?:ddp|distributeddataparallel|distributed\w*)\b[^\n]{0,40}(?:no error|works?\b|\bfine\b|\bruns\b))"

RULE = Rule(
    id="DDP645",
    slug="buffers-sent-again",
    cause="forward_twice_with_buffers",
    title="A second forward sends the buffers of the model again, before the backward of the first one.",
    symptom="'one of the variables needed for gradient computation has been modified by an inplace operation' with DDP, and not on one card.",
    evidence=(
        "The exception of autograd names a tensor of one dimension, such as the statistics of a batch norm, or a tensor of integers, and the "
        "model is wrapped in DDP. Without DDP, or for another tensor, the cause is an operation of the program itself."
    ),
    remedy=(
        "Give DistributedDataParallel broadcast_buffers=False; or use SyncBatchNorm; or call the model once per step with both inputs "
        "(torch.cat), so that there is one forward before each backward."
    ),
    restart="no",  # The model is called twice in each step.
    needs=("process.end",),
    printed=(
        Printed(
            _CHANGED + r"[\d, ]+\]\] is at version",
            beside=r"(?i:regist\w+[ _]buffer|\bbuffers? of the (?:model|module)\b|\bis a buffer\b)",
            unless=r"broadcast_buffers ?= ?False",
            nowhere=_ALONE,
            says="A buffer of the model was changed between forward and backward: with DDP each forward sends the buffers of rank 0 again.",
            ranks=False,
        ),
        Printed(
            _CHANGED + r"\d+\]\] is at version",
            beside=r"DistributedDataParallel|nn[/\\]parallel[/\\]distributed\.py|\bDDP\b|(?i:multi-?gpu)|Error detected in \w*BatchNorm\w*",
            unless=r"broadcast_buffers ?= ?False",
            says="A buffer of the model was changed between forward and backward: with DDP each forward sends the buffers of rank 0 again.",
            ranks=False,
        ),
        # An optimizer changes weights in place, and those are never integers.
        Printed(
            _CHANGED.replace("Float|Half|BFloat16|Double|Long", "Long|Int|Bool") + r"[\d, ]+\]\] is at version",
            beside=r"DistributedDataParallel|nn[/\\]parallel[/\\]distributed\.py|\bDDP\b",
            unless=r"broadcast_buffers ?= ?False",
            says="A buffer of the model was changed between forward and backward: with DDP each forward sends the buffers of rank 0 again.",
            ranks=False,
        ),
        Printed(
            _CHANGED + r"[\d, ]+\]\] is at version",
            beside=_NOT_ALONE,
            unless=r"broadcast_buffers ?= ?False",
            nowhere=_ALONE,
            says="A tensor was changed between forward and backward in DDP alone: each forward sends the buffers of rank 0 again.",
            ranks=False,
        ),
    ),
    yields_to=("unused-parameters",),
)
