"""Knows what torch prints when it compares the collectives of two ranks (TORCH_DISTRIBUTED_DEBUG=DETAIL)."""

_RUNS = r"Rank \d+ is running (?:inconsistent )?collective: CollectiveFingerPrint\("
# One broadcast, to which two ranks bring tensors of different shapes.
TWO_SIZES = (
    r"Detected mismatch between collectives on ranks\. "
    + _RUNS
    + r"(?:SequenceNumber=(?P<n>\d+), )?OpType=BROADCAST, TensorShape=\[(?P<one>[^\]]*)\]"
    r".{1,2000}?" + _RUNS + r"(?(n)SequenceNumber=(?P=n), )OpType=BROADCAST, TensorShape=\[(?!(?P=one)\])(?P<two>[^\]]*)\]"
)
# DDP's exchange of parameters and buffers, as frames have it.
DDP_SENDS = r"_sync_module_states|_sync_params_and_buffers|_sync_buffers|_distributed_broadcast_coalesced|_broadcast_coalesced"
JOB_BROADCASTS = r"distributed_c10d\.py:\d+ in broadcast\b"
