"""The driver of the host does not fit the runtime that this torch or plugin is built for."""

from ddp_probe.judging.rule import Printed, Rule
from ddp_probe.judging.vendor_words import CARDS

RULE = Rule(
    id="DDP209",
    slug="driver-mismatch",
    cause="driver_cuda_mismatch",
    title="The host's driver does not fit the runtime that this torch or vendor plugin was built for.",
    symptom=(
        "'The NVIDIA driver on your system is too old', 'Error 803: system has unsupported display driver / cuda driver combination', 'Error 804: "
        "forward compatibility was attempted on non supported HW', 'Driver/library version mismatch'."
    ),
    evidence="The runtime says so when it starts. If there is no driver at all, see cuda-call-without-cuda; if there is no card, no-gpu-visible.",
    remedy=(
        'Compare the driver (nvidia-smi, or the vendor\'s tool) with the runtime (python -c "import torch; print(torch.version.cuda)"): '
        "update the driver, or install a torch built for an older runtime. In a container, also look for a compat folder on LD_LIBRARY_PATH. "
        "After a driver update on a running host, reboot it."
    ),
    restart="elsewhere",  # The driver is the host's; a host with a driver that fits runs the job.
    needs=("process.start",),
    printed=(
        Printed(
            r"The NVIDIA driver on your system is too old \(found version (?P<major>\d{1,2}?)0(?P<minor>\d)0\)",
            says="The NVIDIA driver is too old for this torch: it supports CUDA {major}.{minor} at most.",
        ),
        Printed(r"The NVIDIA driver on your system is too old"),
        Printed(
            r"CUDA driver version is insufficient for CUDA runtime version|cudaErrorInsufficientDriver"
            r"|provided PTX was compiled with an unsupported toolchain"
        ),
        Printed(r"(?:[Ee]rror ?\(?=? ?|runtime error \()(?P<code>80[34])\)? ?: ?(?P<words>[\w /]+)", says="CUDA's error {code}: {words}."),
        Printed(r"system has unsupported display driver (?:/ cuda driver )?combination|[Ff]orward compatibility was attempted on non supported HW"),
        Printed(
            r"(?:CUDA|an) unknown error - this may be due to an incorrectly set up environment",
            says="CUDA does not start on this host: the driver is not loaded correctly, or a visible-device variable was changed after the start.",
        ),
        Printed(
            r"Unexpected error from cudaGetDeviceCount[^\n]*Error 101\b",
            says="CUDA cannot count the cards: the driver does not answer correctly, or a visible-device variable names a card that does not exist.",
        ),
        Printed(r"API call is not supported in the installed CUDA driver|unsatisfied condition: cuda *>=|CUDA driver is a stub library"),
        Printed(r"Driver/library version mismatch|NVMLError_LibRmVersionMismatch"),
        Printed(
            r"[Ee]rror 802: system not yet initialized|cudaErrorSystemNotReady",
            says="CUDA's error 802: the fabric manager of these cards is not running, or its version does not match the driver's.",
        ),
        Printed(
            (
                r"(?:CANN|firmware|[Dd]river|toolkit|runtime|TopsRider|topsruntime|CNRT|%s)[^\n]{0,60}version[^\n]{0,40}(?:does not match"
                r"|do(?:es)? not fit|mismatch(?:ed)?|is (?:too (?:low|old)|lower than|not compatible)|incompatible)[^\n]{0,80}(?:driver|firmware"
                r"|runtime|toolkit|KMD|kmd|required)" % CARDS
            ),
            unless=r"compile PyTorch",
        ),
    ),
    yields_to=("init-failure-swallowed",),
)
