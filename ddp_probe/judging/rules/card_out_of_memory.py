"""The job needs more memory than the card has."""

from ddp_probe.judging.rule import Printed, Rule
from ddp_probe.judging.vendor_words import CARDS

_FATAL = r"(?m:^)(?![^\n]{0,200}(?:WARN|[Ww]arning|[Ss]kip|[Rr]etry|\bcaught\b))[^\n]*"  # The beginning of a line.
_CARD = r"(?:CUDA|HIP|%s)" % CARDS

RULE = Rule(
    id="DDP221",
    slug="card-out-of-memory",
    cause="card_out_of_memory",
    title="The job needs more memory than the card has.",
    symptom="OutOfMemoryError on one rank or on all of them; the others then report a closed connection or a timeout.",
    evidence="The allocator's message. It does not say which of the job's tensors fill the card.",
    remedy="Lower the batch size per card, or accumulate gradients over smaller batches; use mixed precision, activation checkpointing or FSDP. "
    "If it fails on one rank only, compare what else runs on that card (nvidia-smi) and how long that rank's samples are.",
    restart="no",  # The same batch and model need the same memory again.
    needs=("process.end",),
    printed=(
        Printed(
            _FATAL + r"\b" + _CARD + r" out of memory\. Tried to allocate (?P<asked>[\d.]+ ?[KMGT]i?B)",
            says="A card has no room for the {asked} that the job asks for.",
        ),
        Printed(r"NCCL WARN Cuda failure (?:\d{1,4} )?'out of memory'", says="NCCL needs more memory than the card has.", ranks=False),
        Printed(
            r"(?:CUDA|HIP) error: out of memory|cudaErrorMemoryAllocation|hipErrorOutOfMemory|CUBLAS_STATUS_ALLOC_FAILED",
            says="The job needs more memory than the card has.",
        ),
        Printed(
            r"(?:RESOURCE_EXHAUSTED|Resource exhausted): [^\n]{0,200}Attempting to (?:reserve|allocate) "
            r"(?P<asked>[\d.]+[KMGT]?)[^\n]{0,60}not possible",
            says="A card has no room for the {asked} that the job asks for (XLA).",
        ),
        Printed(
            r"EL0004\)?:[^\n]*Failed to allocate memory|EI0011\)?:[^\n]*Failed to allocate \[?\d+\]? bytes of NPU memory",
            says="The card has no free memory for CANN: the job needs more than it has, or another process holds it.",
        ),
        Printed(_FATAL + r"\bOutOfMemoryError: " + _CARD + r" out of memory", says="The job needs more memory than the card has."),
    ),
    yields_to=("stale-process-holds-card", "map-location-missing", "set-device-missing"),
)
