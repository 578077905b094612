"""An operator was built without support for the device that it is called on."""

from ddp_probe.judging.rule import Printed, Rule
from ddp_probe.judging.vendor_words import CARDS

RULE = Rule(
    id="DDP807",
    slug="operator-not-built",
    cause="op_not_built_for_device",
    title="An operator was built without support for this device.",
    symptom=(
        "'implementation for device cuda:0 not found', 'not compiled with GPU support', 'no kernel image is available', "
        "or 'Could not run … with arguments from the … backend'."
    ),
    evidence="The exception names the operator and the device.",
    remedy=(
        "Install a build of that library for this torch, this CUDA (or this vendor's toolkit) and this card's architecture; "
        "if it is built on first use, the compiler and the toolkit must be installed (nvcc, FORCE_CUDA=1, TORCH_CUDA_ARCH_LIST)."
    ),
    restart="no",  # The build stays without it.
    needs=("process.end",),
    printed=(
        Printed(
            r"(?P<op>\w+): implementation for device (?P<device>\w+(?::\d+)?) not found",
            says="{op} was built without an implementation for {device}.",
        ),
        Printed(
            r"(?P<op>\w+) is not (?:compiled|implemented|built) (?:with|on|for) (?:the )?(?P<device>GPU|CUDA|ROCm|HIP|%s)(?: support)?" % CARDS,
            says="{op} was built without {device}.",
        ),
        Printed(r"(?<!Torch )[Nn]ot compiled with (?:GPU|CUDA|ROCm) support", unless=r"Torch not compiled with CUDA enabled"),
        Printed(
            r"no kernel image is available for execution on the device|(?:(?:CUDA|HIP) error|error in \w+): invalid device function"
            r"|nvcc fatal\s*: Unsupported gpu architecture|with CUDA capability sm_\d+ is not compatible with the current PyTorch installation"
            r"|NCCL WARN Cuda failure (?:\d+ )?'(?:named symbol not found|invalid device function)'"
            r"|cudaErrorNoKernelImageForDevice|hipErrorNoBinaryForGpu"
        ),
        Printed(
            r"Could not run '(?P<op>(?!c10d::)[\w:.]+)' with arguments from the '(?P<device>(?!Sparse|Quantized|Meta)\w+)' backend",
            says="{op} has no kernel for {device}.",
        ),
        Printed(
            r"[Tt]he operator '(?P<op>[\w:.]+)' is not (?:currently )?(?:implemented|supported) (?:for|on) the (?P<device>\w+)"
            r"(?![^\n]*\bwill fall back\b)",
            says="{op} has no kernel for {device}.",
        ),
        Printed(
            (
                r"unable to compile (?:CUDA|NPU|XPU|MUSA|MLU) op|CUDA_HOME environment variable is not set"
                r"|Ninja is required to load C\+\+ extensions|Error building extension '(?P<op>\w+)'"
            ),
            says="An operator that is compiled on first use could not be compiled.",
        ),
        Printed(
            r"torch_extensions/\S*?(?P<op>\w+)\.so: cannot open shared object file",
            says="The operator {op} is compiled on first use, and its build left no library.",
        ),
        Printed(
            r"No module named '(?P<op>mmcv\._ext|\w+_cuda|\w+\._C_cuda|MultiScaleDeformableAttention)'", says="The compiled part {op} was not built."
        ),
        Printed(
            r"\bOp (?P<op>\w+) does not ha(?:s|ve) any binary",
            says="CANN has no compiled kernel of {op}: the package of kernels for this chip is missing, or belongs to another version of CANN.",
        ),
        Printed(
            r"(?:EZ9999|E[A-Z]\d{4})[^\n]*(?:op type|[Oo]p\w*)[^\n]{0,80}(?:is not supported|not (?:found|registered))"
            r"|aclnn\w+[^\n]{0,60}not (?:found|supported)"
        ),
    ),
    yields_to=("mixed-installations",),
)
