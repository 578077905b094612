"""The job needs a card, and this process sees none."""

from typing import Iterator, List

from ddp_probe.judging import change, own_group
from ddp_probe.judging.no_cuda import IN_INIT_DIST, said
from ddp_probe.judging.rule import Finding, Printed, Rule, failed, first_of
from ddp_probe.judging.vendor_words import CARDS
from ddp_probe.judging.who import ranks, ranks_of, told
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named, place

_COUNT = r"%\s*(?:num_gpus|n_?gpus?|gpus?_per_node|num_devices|torch\.\w+\.device_count\(\))"

RULE = Rule(
    id="DDP207",
    slug="no-gpu-visible",
    cause="no_gpu_visible",
    title="The job needs a card, and this process sees none.",
    symptom=(
        "'ProcessGroupNCCL is only supported with GPUs, no GPUs found', 'No CUDA GPUs are available', or ZeroDivisionError in launch code that "
        "divides by device_count()."
    ),
    evidence="The exception says so; in OpenMMLab's slurm branch it is a division by torch.cuda.device_count(), which is 0.",
    remedy=(
        "Check that the host has the cards and that the job can see them (nvidia-smi or the vendor's tool in the same container, "
        "CUDA_VISIBLE_DEVICES or the vendor's variable, --gres of the scheduler); on a CPU run, use gloo and no device index."
    ),
    restart="unknown",  # The settings hide the cards, or this host has lost them: the words are the same.
    needs=("mmengine.init_dist", "dist.init_process_group"),
    fix="backend",
    printed=(
        Printed(
            r"init_device_fds: EXCEPTION: opendir failed",
            says="oneCCL finds no /dev/dri/by-path: the container was given the cards without it (-v /dev/dri/by-path:/dev/dri/by-path).",
        ),
        Printed(r"ProcessGroup(?P<backend>\w+) is only supported with \w+, no \w+ found", says="The backend {backend} finds no card."),
        Printed(
            r"ZeroDivisionError: integer (?:division or )?modulo by zero",
            beside="(?:" + IN_INIT_DIST + r")|" + _COUNT,
            says="The launch code divides by the number of cards, and it is 0.",
            ranks=False,
        ),
        Printed(r"No (?:available )?(?:%s)s? (?:found|available|device)" % CARDS),
        Printed(
            r"no CUDA-capable device is detected|CUDA driver initialization failed, you might not have a CUDA gpu|cudaErrorNoDevice"
            r"|hipErrorNoDevice|CUDA_ERROR_NO_DEVICE|no ROCm-capable device is detected"
        ),
        Printed(
            r"No supported gpu backend found|You requested (?:gpu|GPU)s?: \[[^\]]*\]\s*But your machine only has: \[\]"
            r"|`?\w+Accelerator`? can(?: ?not|'t) run on your system since the accelerator is not available"
        ),
        Printed(
            (
                r"(?:AssertionError|RuntimeError|ValueError|EnvironmentError|OSError|SystemExit|Exception)[^\n]{0,40}(?:CUDA|[Cc]uda|GPU"
                r"|gpu)s? (?:is|are) not (?:available|found|detected)|No GPU (?:found|available|detected)|requires (?:at least one|a) (?:CUDA "
                r"|NVIDIA )?GPU\b"
            ),
            unless=r"is_available\(\) is False|map_location",
        ),
        Printed(
            r"AssertionError|assert torch\.cuda\.is_available\(\)",
            beside=r"assert torch\.cuda\.is_available\(\)",
            says="The job asserts torch.cuda.is_available(), which is False.",
        ),
        Printed(
            r"Invalid CUDA '(?:--)?device",
            beside=r"torch\.cuda\.device_count\(\): 0\b",
            says="The job asks for cards, and torch.cuda.device_count() is 0.",
        ),
        Printed(
            r"Invalid CUDA '(?:--)?device[ =](?:0|cuda)' requested, use|valid devices are 0 - -1",
            says="The job asks for card 0, and torch sees no card.",
        ),
        Printed(r"Unable to proceed, no GPU resources available|Failed to infer device type|Device not found\] Device acquire failed"),
        Printed(
            r"Unable to open /dev/kfd read-write: (?P<why>Permission denied|Operation not permitted|No such file or directory)",
            says="ROCm cannot open /dev/kfd ({why}): give the container --device=/dev/kfd and --device=/dev/dri, and the user the group render.",
            nowhere=r"\b(?:[Ll]oss|[Ee]poch)\b",  # A library asks for it on hosts that have no such cards, too.
        ),
        Printed(
            r"(?:Accelerator|CUDA) is not detected, cannot perform low precision training|Cannot use fp16 without (?:CUDA|accelerator)"
            r"|There are currently no available devices found, must be one of|You requested to find \d+ devices but there are no visible \w+ devices"
            r"|GPUs requested but none are available|DeepSpeed JIT builder for '\w+' found no CUDA devices"
        ),
        Printed(
            r"No HIP GPUs are available",
            says="torch's HIP build sees no card: the driver's device files are missing or the user may not open them, or the card is not supported.",
        ),
        Printed(
            r"fill_device_fds: EXCEPTION: open failed",
            says="oneCCL cannot open the device files of the cards: give the container /dev/dri (--device /dev/dri).",
        ),
        Printed(
            r"nvidia-container-cli: (?:initialization|detection) error: (?P<why>[^\\\"\n]{1,80})",
            says="The container runtime cannot give the container its cards: {why}.",
        ),
        Printed(
            r"nvml error: driver not loaded|could not select device driver \S+ with capabilities: \[\[gpu\]\]",
            says="The container runtime does not find a driver for the cards.",
        ),
        Printed(
            r"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver|NVMLError_DriverNotLoaded"
            r"|Failed to initialize NVML: (?:Unknown Error|Driver Not Loaded|No supported GPUs)"
        ),
    ),
    yields_to=("visible-cards-wrong", "cuda-stands-for-another", "driver-mismatch", "init-failure-swallowed"),
)


def check(run: Run) -> Iterator[Finding]:
    """Find it in the exception and its frames; the process's first line shows whether a variable hides the cards."""
    lost = [(match.failure, match.printed.ranks) for match in told(RULE, run)]
    lost += [(failure, True) for failure in run.failures if failure.fatal and failure.process is not None and _none_there(failure, failure.process)]
    if not lost:
        return
    first = lost[0][0]
    yield RULE.found(
        ranks=ranks(failure.process for failure, guilty in lost if guilty),
        verdict=say(
            "The job needs a card at {where}, and {who} {who:sees|see} none: {error}{why}.",
            where=place(first.site),
            who=named(_of([failure for failure, _ in lost])),
            error=said(first),
            why=_why(first),
        ),
        evidence=first_of([failed(failure) for failure, _ in lost]),
        when=first.when,
        change=_change(first),
        explains=[failure for failure, _ in lost],
        fix=RULE.fix if any(isinstance(call.begin, schema.InitProcessGroup) for call in first.calls) else "",
    )


_NONE = Expression(r"No (?:CUDA|HIP|%s) (?:GPUs|devices?) (?:are|is) available" % CARDS)


def _none_there(failure: Failed, process: LoggedProcess) -> bool:
    """Tell whether no card is available although no variable limits the cards; else the variable is the cause."""
    hidden = any(card.visible for card in process.started.accelerators)
    return not hidden and _NONE.search(failure.text) is not None


def _of(failures: List[Failed]) -> List[int]:
    return sorted(set(ranks_of(failures)))


def _why(failure: Failed) -> str:
    """Return what the launch code did with the number of cards, if the exception does not say so."""
    init = next((call for call in failure.calls if isinstance(call.begin, schema.InitDist)), None)
    if init is None or not failure.type.endswith("ZeroDivisionError"):
        return ""
    return say(
        "; init_dist with launcher {launcher} divides by torch.cuda.device_count(), which is 0",
        launcher=init.begin.launcher,
    )


def _change(failure: Failed) -> change.Change:
    inits = [call for call in failure.calls if isinstance(call.begin, schema.InitDist)]
    if inits and failure.process is not None:
        cards = say("Or give the job cards (--gres), and check them with nvidia-smi.")
        return [*own_group.instead_of_init_dist(failure.process, inits[0]), cards]
    if any(isinstance(call.begin, schema.InitProcessGroup) for call in failure.calls):
        value = "$was if torch.cuda.is_available() else 'gloo'"
        given = change.Argument(failure.site, change.GROUP, "backend", value, 0, False, "'nccl'", imports=("torch",))
        return [given, say("For NVIDIA cards, check nvidia-smi in the same container, and CUDA_VISIBLE_DEVICES.")]
    return ()
