"""The cases. None of them has run on a card yet: what each expects is read from the rules and from what torch and NCCL document.

One visible card is enough for those with cards=1, on a host with more cards too: the job then sees one of them.
"""

from gpu_parts.case import CLEAR, Case

# NCCL's watchdog ends a rank soon after the timeout of its group, and does not wait for dumps of its own.
_WATCHDOG = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "TORCH_NCCL_DUMP_ON_TIMEOUT": "0", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "30"}
_FEW = ("more-processes-than-cards",)
_MISSING = ("rank-missing-from-collective",)

CASES = (
    Case("healthy-one-card", "DDP over NCCL in a world of one rank.", "healthy.py", (CLEAR,), on_cpu=True),
    Case("healthy-two-cards", "DDP over NCCL, each rank on its card.", "healthy.py", (CLEAR,), ranks=2, cards=2, on_cpu=True),
    Case("more-ranks-than-cards", "set_device is refused: invalid device ordinal.", "more_ranks_than_cards.py", _FEW, (1,), 2),
    Case("duplicate-gpu", "Two ranks put their models on one card, and NCCL refuses it.", "duplicate_gpu.py", _FEW, (0, 1), 2),
    Case("duplicate-gpu-in-barrier", "The first collective is a barrier, and NCCL refuses it.", "duplicate_gpu_in_barrier.py", _FEW, ranks=2),
    Case(
        "cpu-tensor-with-nccl", "A tensor on the CPU goes into a collective of NCCL.", "cpu_tensor_with_nccl.py", ("cpu-tensor-in-collective",), (0,)
    ),
    Case("set-device-missing", "No rank chooses its card.", "set_device_missing.py", ("set-device-missing",), (0, 1), 2, 2),
    Case("card-number-fixed", "Each rank chooses card 0.", "card_number_fixed.py", ("card-number-fixed",), (0, 1), 2, 2),
    Case("device-ids", "device_ids names the neighbour's card.", "device_ids_of_another_card.py", ("device-ids-of-another-card",), (0, 1), 2, 2),
    Case(
        "all-reduce-never-joined",
        "The all_reduce returns, and the hang is in a later synchronize.",
        "all_reduce_never_joined.py",
        _MISSING,
        (1,),
        ranks=2,
        cards=2,
        on_cpu=True,
        environment=_WATCHDOG,
    ),
    Case("busy-card", "A rank waits for its card while the other waits for this rank.", "busy_card.py", _MISSING, (1,), 2, on_cpu=True),
    Case("fsdp-one-card", "FSDP over NCCL in a world of one rank.", "fsdp.py", (CLEAR,), on_cpu=True),
    Case("fsdp-two-cards", "FSDP over NCCL, each rank on its card.", "fsdp.py", (CLEAR,), ranks=2, cards=2, on_cpu=True),
    Case(
        "cuda-stays-uninitialised", "The probe never initialises CUDA; a fork may still use the card.", "cuda_initialised.py", (CLEAR,), on_cpu=True
    ),
    Case("memory-of-a-card", "device.state has torch's own figures, and asks no card.", "memory_of_a_card.py", (CLEAR,), on_cpu=True),
    Case("step-cost", "What the probe adds to a training step on a card.", "step_cost.py", (CLEAR,), on_cpu=True, has_cost=True),
)
