"""One record per vendor: module, device type, backends, tool, variables; so that no other file knows a vendor by name.

Standard library only; read in every interpreter of a job, so it stays cheap. A record tells where to look, and looks nowhere itself.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Iterable, List, Optional, Set, Tuple, Union


class Accelerator:
    """What is known of one kind of accelerator before any of its code runs."""

    __slots__ = (
        "backends",
        "device_files",
        "device_types",
        "distributions",
        "drivers",
        "environment",
        "mmengine_knows",
        "modules",
        "name",
        "one_file_per_card",
        "platform",
        "set_device",
        "smi",
        "smi_form",
        "smi_list",
        "smi_state",
        "torch_attribute",
        "vendor",
        "visible",
    )

    def __init__(
        self,
        *,
        name: str,
        vendor: str,
        modules: Tuple[str, ...] = (),  # import names of the vendor's plugin; empty if torch itself brings the support
        distributions: Tuple[Tuple[str, str], ...] = (),  # (module, distribution) if pip has another name for one of them
        device_types: Tuple[str, ...] = (),  # what torch calls its devices, the present name first
        torch_attribute: str = "",  # "gcu" for torch.gcu
        backends: Tuple[str, ...] = (),  # names for init_process_group
        smi: str = "",  # the vendor's command line tool
        smi_list: Tuple[str, ...] = (),  # the arguments with which it lists the cards, and last a pattern of the line of one card
        smi_state: Tuple[Tuple[str, ...], ...] = (),  # the arguments of each command that prints the state of all cards
        smi_form: str = "",  # how that is read (ddp_probe/doctor/card_tools.py); without one it is kept as text
        drivers: Tuple[str, ...] = (),  # names below /sys/module, the likeliest first
        visible: Tuple[str, ...] = (),  # variables that limit which cards a process sees
        environment: Tuple[str, ...] = (),  # beginnings of further variables of its runtime; those of its backends are known
        device_files: Tuple[str, ...] = (),  # patterns below /dev
        one_file_per_card: bool = True,  # the number of device files is the number of cards
        platform: str = "",  # sys.platform where the accelerator is part of every machine
        mmengine_knows: bool = False,  # mmengine 0.10.7 get_device() can answer it
        set_device: Tuple[str, ...] = (),  # where set_device is defined, as module:qualname; candidates, the likeliest first
    ) -> None:
        self.name = name
        self.vendor = vendor
        self.modules = modules
        self.distributions = distributions
        self.environment = environment
        self.device_types = device_types
        self.torch_attribute = torch_attribute
        self.backends = backends
        self.smi = smi
        self.smi_list = smi_list
        self.smi_state = smi_state
        self.smi_form = smi_form
        self.drivers = drivers
        self.visible = visible
        self.device_files = device_files
        self.one_file_per_card = one_file_per_card
        self.platform = platform
        self.mmengine_knows = mmengine_knows
        self.set_device = set_device


# The vendors' plugins come before CUDA: a plugin that makes torch.cuda stand for its own cards would otherwise pass for CUDA.
ACCELERATORS: List[Accelerator] = [
    Accelerator(
        name="gcu",
        vendor="Enflame",
        modules=("torch_gcu",),
        device_types=("gcu", "xla"),  # plugins for the T20 show their cards as xla:N
        torch_attribute="gcu",
        backends=("eccl",),
        smi="efsmi",
        smi_state=((),),
        smi_form="rows",
        drivers=("enflame",),
        visible=("TOPS_VISIBLE_DEVICES", "ENFLAME_VISIBLE_DEVICES", "GCU_VISIBLE_DEVICES"),
        environment=("TOPS_", "ENFLAME_", "GCU_", "ENABLE_I64_CHECK"),
        device_files=("gcu[0-9]*", "dtu[0-9]*"),
        set_device=("torch_gcu:set_device", "torch_gcu.gcu:set_device", "torch.gcu:set_device"),
    ),
    Accelerator(
        name="npu",
        vendor="Ascend",
        modules=("torch_npu",),
        device_types=("npu",),
        torch_attribute="npu",
        backends=("hccl",),
        smi="npu-smi",
        smi_list=("info", "-l", r"NPU ID\s*:"),
        smi_state=(("info",),),
        smi_form="npu",
        drivers=("drv_davinci_intf",),
        visible=("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES", "NPU_VISIBLE_DEVICES"),
        environment=("ASCEND_",),
        device_files=("davinci[0-9]*",),
        mmengine_knows=True,
        set_device=("torch_npu.npu.utils:set_device", "torch_npu.npu:set_device"),
    ),
    Accelerator(
        name="mlu",
        vendor="Cambricon",
        modules=("torch_mlu",),
        device_types=("mlu",),
        torch_attribute="mlu",
        backends=("cncl",),
        smi="cnmon",
        smi_state=((),),
        drivers=("cambricon_drv",),
        visible=("MLU_VISIBLE_DEVICES", "CAMBRICON_VISIBLE_DEVICES"),
        environment=("MLU_",),
        device_files=("cambricon_dev[0-9]*",),
        mmengine_knows=True,
        set_device=("torch_mlu.mlu:set_device", "torch_mlu.core.device.utils:set_device", "torch_mlu.core.mlu_model:set_device"),
    ),
    Accelerator(
        name="musa",
        vendor="Moore Threads",
        modules=("torch_musa",),
        device_types=("musa",),
        torch_attribute="musa",
        backends=("mccl",),
        smi="mthreads-gmi",
        smi_state=((),),
        drivers=("mtgpu",),
        visible=("MUSA_VISIBLE_DEVICES", "MTHREADS_VISIBLE_DEVICES"),
        environment=("MUSA_",),
        device_files=("mtgpu.[0-9]*", "mtgpu[0-9]*"),
        mmengine_knows=True,
        set_device=("torch_musa.core.device:set_device", "torch_musa:set_device"),
    ),
    Accelerator(
        name="dipu",
        vendor="DeepLink",
        modules=("torch_dipu",),
        device_types=("dipu", "xpu"),
        torch_attribute="dipu",
        backends=("dicl",),
        mmengine_knows=True,
        set_device=("torch_dipu.dipu.device:set_device",),
    ),
    Accelerator(
        name="hpu",
        vendor="Intel Habana",
        modules=("habana_frameworks",),
        distributions=(("habana_frameworks", "habana-torch-plugin"),),
        device_types=("hpu",),
        torch_attribute="hpu",
        backends=("hccl",),
        smi="hl-smi",
        smi_list=("-L", r"^\s*AIP \d+"),
        smi_state=(("-Q", "index,utilization.aip,memory.used,memory.total,temperature.aip", "-f", "csv"),),
        smi_form="csv",
        drivers=("habanalabs",),
        visible=("HABANA_VISIBLE_DEVICES", "HABANA_VISIBLE_MODULES"),
        environment=("HABANA_", "PT_HPU_"),
        device_files=("accel/accel[0-9]*", "hl[0-9]*"),
        set_device=("habana_frameworks.torch.hpu:set_device",),
    ),
    Accelerator(
        name="xpu",
        vendor="Intel",
        modules=("intel_extension_for_pytorch", "oneccl_bindings_for_pytorch"),
        distributions=(("oneccl_bindings_for_pytorch", "oneccl-bind-pt"),),
        device_types=("xpu",),
        torch_attribute="xpu",
        backends=("xccl", "ccl"),
        smi="xpu-smi",
        smi_list=("discovery", r"Device Name:"),
        smi_state=(("dump", "-d", "-1", "-m", "0,3,18", "-n", "1"),),
        smi_form="csv",
        drivers=(
            "xe",
            "i915",
        ),
        visible=("ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR"),
        set_device=("torch.xpu:set_device", "intel_extension_for_pytorch.xpu:set_device"),
    ),
    Accelerator(
        name="xla",
        vendor="Google",
        modules=("torch_xla",),
        device_types=("xla",),
        backends=("xla",),
        visible=("TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES"),
        environment=("PJRT_",),
    ),
    # scripts/new accelerator puts a new record above this line.
    Accelerator(
        name="mps",
        vendor="Apple",
        device_types=("mps",),
        torch_attribute="mps",
        platform="darwin",
        mmengine_knows=True,
    ),
    Accelerator(
        name="rocm",
        vendor="AMD",
        device_types=("cuda",),
        torch_attribute="cuda",
        backends=("nccl",),
        smi="rocm-smi",
        smi_list=("--showid", r"^GPU\[\d+\]\s*:\s*Device ID"),
        smi_state=(("--showuse", "--showmeminfo", "vram", "--showtemp", "--json"),),
        smi_form="json",
        drivers=("amdgpu",),
        visible=("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
        environment=("RCCL_", "HSA_OVERRIDE_GFX_VERSION"),
        device_files=("kfd",),
        one_file_per_card=False,
        mmengine_knows=True,
        set_device=("torch.cuda:set_device",),
    ),
    Accelerator(
        name="cuda",
        vendor="NVIDIA",
        device_types=("cuda",),
        torch_attribute="cuda",
        backends=("nccl",),
        smi="nvidia-smi",
        smi_list=("-L", r"^GPU \d+:"),
        smi_state=(
            (
                "--format=csv",
                (
                    "--query-gpu=index,uuid,utilization.gpu,memory.used,memory.total,temperature.gpu,"
                    "ecc.errors.uncorrected.volatile.total,clocks_throttle_reasons.active"
                ),
            ),
            ("--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv"),
        ),
        smi_form="csv",
        drivers=("nvidia",),
        visible=("CUDA_VISIBLE_DEVICES",),
        environment=("CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_ORDER", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_HOME"),
        device_files=("nvidia[0-9]*",),
        mmengine_knows=True,
        set_device=("torch.cuda:set_device",),
    ),
    # torch lets any plugin rename privateuseone; the name it chose is looked up at run time.
    Accelerator(name="privateuseone", vendor="", device_types=("privateuseone",)),
]

# torch.accelerator belongs to no vendor. torch 2.6 names it set_device_idx; newer ones set_device_index and keep the old name as a copy of its own.
ANY_SET_DEVICE: Tuple[str, ...] = ("torch.accelerator:set_device_index", "torch.accelerator:set_device_idx")


PLUGINS: Set[str] = set().union(*[accelerator.modules for accelerator in ACCELERATORS])
"""The import names of all plugins, for who asks at every frame."""


def register(accelerator: Accelerator) -> None:
    """Add a third party's record in front of the others, in place of one of the same name."""
    ACCELERATORS[:] = [accelerator] + [other for other in ACCELERATORS if other.name != accelerator.name]
    PLUGINS.update(accelerator.modules)


def modules() -> Tuple[str, ...]:
    """Return the import names of all plugins, each once, in the order of the table."""
    return _of_all(lambda accelerator: accelerator.modules)


def _of_all(names: Callable[[Accelerator], Iterable[str]]) -> Tuple[str, ...]:
    each_once: Dict[str, None] = {}
    for accelerator in ACCELERATORS:
        each_once.update(dict.fromkeys(names(accelerator)))
    return tuple(each_once)


def distributions() -> Dict[str, Tuple[str, ...]]:
    """Return, by module, what pip calls it if that is another name."""
    names: Dict[str, Tuple[str, ...]] = {}
    for accelerator in ACCELERATORS:
        for module, name in accelerator.distributions:
            names[module] = (*names.get(module, ()), name)
    return names


def runtime_variables() -> Tuple[str, ...]:
    """Return the beginnings of the variables that decide how the vendors' runtimes and backends work, each once."""
    return _of_all(lambda accelerator: [*accelerator.environment, *(name.upper() + "_" for name in accelerator.backends)])


def visible_variables() -> Tuple[str, ...]:
    """Return every visible-device variable, each once."""
    return _of_all(lambda accelerator: accelerator.visible)


def set_device_targets() -> Tuple[str, ...]:
    """Return every place where a set_device may be defined, as module:qualname, each once."""
    return tuple(dict.fromkeys(ANY_SET_DEVICE + _of_all(lambda accelerator: accelerator.set_device)))


def by_device_file(name: str) -> Optional[Accelerator]:
    """Return the accelerator that a file below /dev is of."""
    import fnmatch  # For readers alone.

    for accelerator in ACCELERATORS:
        if any(fnmatch.fnmatch(name, pattern) for pattern in accelerator.device_files):
            return accelerator
    return None


def by_device_type(device_type: str) -> Optional[Accelerator]:
    """Return the record whose devices torch calls so: by name first, for `xla` and `cuda` are used by two."""
    named: Dict[str, Accelerator] = {accelerator.name: accelerator for accelerator in reversed(ACCELERATORS)}
    if device_type in named:
        return named[device_type]
    return next((accelerator for accelerator in ACCELERATORS if device_type in accelerator.device_types), None)


def card_number(text: str) -> Union[int, str]:
    """Return the number of the card that 1, cuda:1 or device(type='cuda', index=1) names, else the text."""
    digits = text.strip("'").rpartition(":")[2]
    if text.startswith("device("):
        digits = text.partition("index=")[2].rstrip(")")
    return int(digits) if digits.isdecimal() and len(digits) < 10 else text
