"""A process of an earlier run, or of somebody else, still has the card."""

from typing import Iterator

from ddp_probe.diagnose.printed import by_text
from ddp_probe.diagnose.rule import Example, Finding, Printed, Rule
from ddp_probe.read.model import Run

_SMALL = r"(?:[\d.]+ (?:MiB|KiB|bytes)|0 bytes)"

RULE = Rule(
    id="DDP411",
    slug="stale-process-holds-card",
    cause="stale_process_holds_device",
    title="Another process holds the card.",
    symptom="'all CUDA-capable devices are busy or unavailable', HCCL's 'the last training process is running' or 'have been bound already'; or memory that is full before this process has used any.",
    evidence="The driver or the communication library says that the card or its port is in use; or the card is full while this process holds next to nothing.",
    remedy="End what is left of the earlier run on that host (nvidia-smi, npu-smi info, efsmi or fuser -v /dev/<card> name its pid), wait some seconds, and start again; where another job has the card, choose another one.",
    needs=("process.end",),
    printed=(
        Printed(r"(?:all )?CUDA-capable device(?:s|\(s\))? (?:is/)?are busy or unavailable|devicesUnavailable|cudaErrorDevicesUnavailable"),
        Printed(
            r"CUDA error: out of memory",
            beside=r"_cuda_init|_cuda_setDevice|in _lazy_init\b|in set_device\b",
            says="The card has no memory left for this process to begin with.",
        ),
        Printed(r"[Ll]ast training process is running|Failed to initialize the HCCP process|HCCP process [^\n]*already"),
        Printed(r"\[?Device already acquired|[Dd]evice acquire failed"),
        Printed(r"Failed to bind the IP port|IP address and port have been bound already|Communication_Error_Bind_IP_Port"),
        Printed(r"(?:NPU|MLU|MUSA|GCU|[Dd]evice)[^\n]{0,40}(?:is|has been) (?:busy|occupied|used by another process|in use by another)"),
        Printed(
            r"[\d.]+ GiB total capacity; (?P<own>%s) already allocated; (?P<free>%s) free" % (_SMALL, _SMALL),
            says="The card has {free} left although this process holds {own}: another one holds the rest.",
        ),
        # In a container the processes' numbers are other ones: none of them is called this one.
        Printed(
            r"of which (?P<free>%s) is free\. Process (?P<pid>\d+) has (?P<held>\d\d[\d.]* GiB) memory in use\..*?Of the allocated memory (?P<own>[\d.]+ (?:MiB|KiB|bytes)) is allocated by PyTorch"
            % _SMALL,
            says="Process {pid} holds {held} of the card, this one {own}.",
        ),
        Printed(
            r"of which (?P<free>%s) is free\. Process (?P<pid>\d+) has (?P<held>[\d.]+ GiB) memory in use\. Including non-PyTorch memory, this process has (?P<own>[\d.]+ MiB) memory"
            % _SMALL,
            says="Process {pid} holds {held} of the card, this one {own}.",
        ),
    ),
)

EXAMPLES = (
    Example(
        "The card is set to one process at a time.",
        """
{"event":"process.start","rank":0,"world_size":2,"launcher":"torchrun"}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"RuntimeError","message":"CUDA error: all CUDA-capable devices are busy or unavailable"}}
""",
        ranks=(0,),
    ),
    Example(
        "This process fills the card itself.",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 21.10 GiB already allocated; 20.31 MiB free; 22.01 GiB reserved in total by PyTorch)\n",
        answer="clear",
    ),
    Example(
        "The card is full before this process has begun.",
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.69 GiB total capacity; 1.20 MiB already allocated; 9.44 MiB free; 2.00 MiB reserved in total by PyTorch)\n",
    ),
    Example(
        "HCCL finds its process of an earlier run.",
        "RuntimeError: create_config:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:102 HCCL function error: hcclCommInitRootInfoConfig(numRanks, &rootInfo, rank, config, &(comm->hcclComm_)), error code is 7\n"
        "[ERROR] 2025-01-02-10:11:12 (PID:77, Device:0, RankID:2) ERR02200 DIST call hccl api failed.\nEJ0001: [PID: 77] 2025-01-02-10:11:12.975.866 Failed to initialize the HCCP process. Reason: Maybe the last training process is running.\n",
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """The exception's own words decide."""
    return by_text(RULE, run)
