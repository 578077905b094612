"""The loader does not find a library of the accelerator's software."""

from dataclasses import replace
from typing import Iterator

from ddp_probe.judging import vendor_words
from ddp_probe.judging.printed import Match, by_text, matches
from ddp_probe.judging.rule import Finding, Printed, Rule
from ddp_probe.judging.vendor_words import BACKENDS, DEVICES, MODULES
from ddp_probe.reading.model import Run
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import quoted

# The names of files have no record, but for those that begin with a vendor's device, backend or module.
_NAMES = (
    r"\b(?:lib)?(?:srv_um\w*|hcom\w*|te_fusion|drvdsmi\w*|mmpa|xpurt|xpuapi|bkcl|ixthunk|ixml|mc(?:runtime|blas|dnn|fft|toolext\w*)|mxc-runtime\w*"
    r"|mxsml|galaxyhip|hl_thunk|cuda\w*|cudart|cudnn\w*|cublas\w*|cufft\w*|curand\w*|cusolver\w*|cusparse\w*|cupti|nccl\w*|nv\w+"
    r"|torch_xpu\w*|ascend\w*|acl\w*|atb\w*|ge_\w+|graph|msprof\w*|runtime|opapi|nnopbase|cnrt|cnnl\w*|cnpapi|cndrv|cndev"
    r"|mu(?:dnn|blas|fft|rand|pti|sparse|solver)\w*"
    r"|tops\w*|efrt|efml|dtu\w*|hsa\w*|amdhip\w*|rocm\w*|roc\w+|rccl|MIOpen|intel-ext-pt\w*(?:-\w+)*|ze_loader|sycl|oneccl"
    r"|mkl\w*_sycl|Synapse|hcl|synapse\w*|diopi\w*|tpu\w*"
    r"|c10_(?:%s)|(?:%s|%s|%s)\w*)" % (DEVICES, MODULES, DEVICES, BACKENDS)
)
# NCCL and RCCL look for these plugins, and do without them.
_SO = r"(?!-(?:net|tuner|profiler|env)\b)[\w.-]*\.so[\w.]*"
# Not in a line in which a library reports what it looks for and does not need.
_NO_REMARK = r"(?m:^)(?![^\n]*(?:NCCL INFO|NET/Plugin|dso_loader))[^\n]*?"

# DeepSpeed names the class that it has for the vendor.
_ACCELERATOR = Printed(
    r"\w+_Accelerator requires (?P<library>[\w.]+), which is not installed on this system",
    says="DeepSpeed is to use cards whose plugin {library} is not installed in this interpreter.",
)
_PLUGIN = Printed(
    r"No module named '(?P<library>%s|torch_(?:hpu|dtu)|habana_frameworks\.torch)'" % vendor_words.MODULES,
    says="The plugin {library} is not installed in this interpreter.",
)

RULE = Rule(
    id="DDP211",
    slug="vendor-library-missing",
    cause="vendor_runtime_lib_missing",
    title="A shared library of the accelerator's software cannot be found.",
    symptom=(
        "'ImportError: libmccl.so.2: cannot open shared object file', when torch or the vendor's plugin is imported, or when its backend is first "
        "used."
    ),
    evidence="The loader names the file. A library that loads but lacks a symbol has another cause: mixed versions.",
    remedy=(
        "Install the version of the vendor's runtime that the plugin needs, or put its folder on LD_LIBRARY_PATH in the ranks' environment (source "
        "the vendor's set_env.sh before the launcher, and pass it through the scheduler and the container)."
    ),
    restart="unknown",  # A variable of the job, or an installation that this host alone lacks.
    needs=("process.end",),
    printed=(
        Printed(
            _NO_REMARK + r"(?P<library>" + _NAMES + _SO + r"): cannot open shared object file",
            unless=r"No backend type associated|Failed to load image Python extension|dso_loader|tensorflow/",
            says="The loader does not find {library}.",
        ),
        Printed(
            (
                r"(?:Could not load library|[Uu]nable to load(?: any of)?|[Cc]annot load|[Ff]ailed to (?:load|dlopen)"
                r"|dlopen[^\n]{0,20}failed)[^\n]{0,20}?(?P<library>"
            )
            + _NAMES
            + _SO
            + r")",
            unless=r"dso_loader|tensorflow/|Failed to load image Python extension",
            says="{library} cannot be loaded.",
        ),
        Printed(
            r"Failed to load NCCL library from (?P<library>\S{1,300}?)\. It is expected if you are not running",
            says="{library} cannot be loaded, which is an error only on a host with NVIDIA or AMD cards.",
            next="Run ldd on that file on this host; without VLLM_NCCL_SO_PATH vLLM takes the libnccl.so.2 of the installed packages.",
        ),
        Printed(
            r"No module named '(?P<library>tbe|te|te_fusion|topi|acl|auto_tune|mspti)(?:\.[\w.]+)?'",
            says="The toolkit's Python module {library} is not on the path: its environment script was not sourced.",
        ),
        Printed(
            r"fi_getinfo error: ret -61, providers 0|atl_ofi[^\n]*can't find suitable provider",
            says="oneCCL finds no provider of libfabric: FI_PROVIDER_PATH leads to none, or the provider's library is not installed.",
        ),
        Printed(
            r"EC0010[^\n]*Failed to import Python module \[ModuleNotFoundError: No module named '(?P<library>[\w.]+)'",
            says="CANN's compiler of operators lacks the Python package {library}.",
        ),
        Printed(
            r"EH9999[^\n]*\[Init\]\[Env\] ?init env failed",
            says="CANN's compiler of operators does not start: a Python package that it needs (decorator, sympy, attrs) is missing.",
        ),
        _ACCELERATOR,
        _PLUGIN,
        Printed(
            (
                r"cuda driver can't be loaded, is cuda enabled|NVML Shared Library Not Found|NVMLError_LibraryNotFound"
                r"|libcuda\.so(?:\.\d+)?: (?:file too short|cannot open)"
            ),
            says="The driver's library is missing.",
        ),
    ),
    yields_to=("cuda-stands-for-another", "init-failure-swallowed"),
)


def check(run: Run) -> Iterator[Finding]:
    """Use the loader's words; a plugin that the interpreter lacks is named by Python, and LD_LIBRARY_PATH does not help."""
    plugin = next((match for match in matches(RULE, run) if match.printed is _PLUGIN), None)
    for finding in by_text(RULE, run):
        yield finding if plugin is None else replace(finding, remedy=_install(plugin))


def _install(plugin: Match) -> Text:
    process = plugin.failure.process
    return say(
        "Install the vendor's package of {library} for this torch into {python} (-m pip install its wheel), "
        "or start the ranks with the interpreter that has it.",
        library=plugin.found.group("library"),
        python=quoted((process.started.executable if process is not None else "") or "python"),
    )
