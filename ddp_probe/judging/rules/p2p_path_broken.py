"""Two cards of one host cannot reach each other's memory, and NCCL or a kernel tries."""

from ddp_probe.judging.rule import Printed, Rule

RULE = Rule(
    id="DDP241",
    slug="p2p-path-broken",
    cause="p2p_path_broken",
    title="Two cards of one host cannot reach each other's memory (peer to peer).",
    symptom="'peer access is not supported between these two devices', 'failed to open CUDA IPC handle', or a failure in NCCL's transport/p2p.",
    evidence=(
        "The words of CUDA, or a failure in NCCL's transport between cards, as in containers that see one card each, MIG instances, virtual "
        "machines, or behind an IOMMU with ACS. A debugger's remark that peer access was refused proves nothing: NCCL then takes another path."
    ),
    remedy=(
        "Start once with NCCL_P2P_DISABLE=1 (with NCCL 2.24 and later also NCCL_CUMEM_HOST_ENABLE=0): if that runs, give all cards of the job to one "
        "container, and turn off ACS or the IOMMU in the BIOS for speed (nvidia-smi topo -p2p r)."
    ),
    restart="elsewhere",  # The path belongs to these cards and to their host's settings.
    needs=("process.end",),
    printed=(
        Printed(
            r"peer access is not supported between these two devices|cudaErrorPeerAccessUnsupported"
            r"|[Ff]ailed to open CUDA IPC handle|peer mapping resources exhausted"
            r"|[Cc]uda (?:failure|error):? 217\b",
            says="Two cards of the host cannot reach each other's memory.",
            ranks=False,
        ),
        Printed(
            r"transport/p2p\.cc:\d+ NCCL WARN Cuda failure (?:\d+ )?'(?P<why>[^'\n]+)'",
            unless=r"out of memory|ECC|illegal memory access|unspecified launch failure",
            says="NCCL fails on the direct way between two cards: {why}.",
            ranks=False,
        ),
        Printed(
            r"Using RTX \d+ series doesn't support faster communication",
            says="These cards have no direct way to each other: set NCCL_P2P_DISABLE=1 and NCCL_IB_DISABLE=1 before torch is imported.",
            ranks=False,
        ),
        Printed(
            r"EI0010\)?:[^\n]*P2P communication failed",
            says="Two NPUs of the host cannot reach each other's memory: look at their state (npu-smi info), or try HCCL_INTRA_ROCE_ENABLE=1.",
            ranks=False,
        ),
        Printed(
            r"NCCL WARN hipIpc(?:Get|Open)MemHandle failed ?:? ?(?P<why>[^\n]{0,60})",
            says="RCCL cannot hand the memory of one card to another process: {why}.",
            ranks=False,
        ),
    ),
)
