"""The driver of the host does not fit the runtime that this torch or plugin is built for."""

from typing import Iterator

from ddp_probe.diagnose.printed import by_text
from ddp_probe.diagnose.rule import Example, Finding, Printed, Rule
from ddp_probe.read.model import Run

RULE = Rule(
    id="DDP209",
    slug="driver-mismatch",
    cause="driver_cuda_mismatch",
    title="The host's driver does not fit the runtime that this torch or vendor plugin was built for.",
    symptom="'The NVIDIA driver on your system is too old', 'Error 803: system has unsupported display driver / cuda driver combination', 'Error 804: forward compatibility was attempted on non supported HW', 'Driver/library version mismatch'.",
    evidence="The runtime itself says so when it starts. Without any driver it is cuda-call-without-cuda; without a card no-gpu-visible.",
    remedy='Compare the driver (nvidia-smi, or the vendor\'s tool) with the runtime (python -c "import torch; print(torch.version.cuda)"): update the driver, or install a torch built for an older runtime; in a container also look for a compat folder on LD_LIBRARY_PATH. After a driver update on a running host, reboot it.',
    needs=("process.start",),
    printed=(
        Printed(
            r"The NVIDIA driver on your system is too old \(found version (?P<major>\d{1,2}?)0(?P<minor>\d)0\)",
            says="The NVIDIA driver is too old for this torch: it serves CUDA {major}.{minor} at most.",
        ),
        Printed(r"The NVIDIA driver on your system is too old"),
        Printed(
            r"CUDA driver version is insufficient for CUDA runtime version|cudaErrorInsufficientDriver|provided PTX was compiled with an unsupported toolchain"
        ),
        Printed(r"(?:[Ee]rror ?\(?=? ?|runtime error \()(?P<code>80[34])\)? ?: ?(?P<words>[\w /]+)", says="CUDA's error {code}: {words}."),
        Printed(r"system has unsupported display driver (?:/ cuda driver )?combination|[Ff]orward compatibility was attempted on non supported HW"),
        Printed(
            r"(?:CUDA|an) unknown error - this may be due to an incorrectly set up environment",
            says="CUDA does not start on this host: the driver is not loaded as it should be, or a visible-device variable was changed after the start.",
        ),
        Printed(
            r"Unexpected error from cudaGetDeviceCount[^\n]*Error 101\b",
            says="CUDA cannot count the cards: the driver does not answer as it should, or a visible-device variable names a card that it does not have.",
        ),
        Printed(r"API call is not supported in the installed CUDA driver|unsatisfied condition: cuda *>=|CUDA driver is a stub library"),
        Printed(r"Driver/library version mismatch|NVMLError_LibRmVersionMismatch"),
        Printed(
            r"[Ee]rror 802: system not yet initialized|cudaErrorSystemNotReady",
            says="CUDA's error 802: the fabric manager of these cards does not run, or is of another version than the driver.",
        ),
        Printed(
            r"(?:CANN|firmware|[Dd]river|toolkit|runtime|TopsRider|topsruntime|MUSA|CNRT)[^\n]{0,60}version[^\n]{0,40}(?:does not match|do(?:es)? not fit|mismatch(?:ed)?|is (?:too (?:low|old)|lower than|not compatible)|incompatible)[^\n]{0,80}(?:driver|firmware|runtime|toolkit|KMD|kmd|required)",
            unless=r"compile PyTorch",
        ),
    ),
    yields_to=("init-failure-swallowed",),
)

EXAMPLES = (
    Example(
        "A driver for CUDA 11.4 under a torch for CUDA 12.",
        """
{"event":"device.set","phase":"begin","rank":0,"span":1,"site":{"file":"/train/t.py","line":12},"target":"torch.cuda.set_device","device":"0"}
{"event":"device.set","phase":"error","rank":0,"span":1,"failure":{"type":"RuntimeError","message":"The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver by downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx"}}
""",
        ranks=(0,),
    ),
    Example(
        "No driver at all is another cause.",
        """
{"event":"device.set","phase":"begin","rank":0,"span":1,"site":{"file":"/train/t.py","line":12},"target":"torch.cuda.set_device","device":"0"}
{"event":"device.set","phase":"error","rank":0,"span":1,"failure":{"type":"RuntimeError","message":"Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx"}}
""",
        answer="clear",
    ),
    Example(
        "The warning that torch gives when it counts cards.",
        "/env/site-packages/torch/cuda/__init__.py:52: UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 804: forward compatibility was attempted on non supported HW (Triggered internally at /pytorch/c10/cuda/CUDAFunctions.cpp:115.)\n  return torch._C._cuda_getDeviceCount() > 0\n"
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 804: forward compatibility was attempted on non supported HW\n",
    ),
    Example(
        "CUDA does not start, and does not know why.",
        "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero.\n",
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """The runtime says it."""
    return by_text(RULE, run)
