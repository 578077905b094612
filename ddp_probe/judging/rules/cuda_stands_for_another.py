"""A vendor's plugin replaces torch.cuda for its own cards: torch.cuda.is_available() is True on a host without CUDA."""

import re
from typing import Iterator, Optional

from ddp_probe.judging.no_cuda import NO_CUDA, said
from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, failed
from ddp_probe.judging.vendor_words import DEVICES
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import say
from ddp_probe.wording.words import named

_REAL = (
    NO_CUDA + r"|NVML|nvidia-smi|libcuda\.so|libcudart|libnccl|doesn't have NCCL built in|ProcessGroupNCCL|CUDA_HOME|nvcc|cudaError|CUDA error"
    r"|No CUDA GPUs are available"
    r"|NCCL error|no attribute 'ProcessGroupNCCL'|aten::[\w.]+' with arguments from the 'CUDA' backend|got device type '?cuda"
    r"|Expected one of .* device type at start of device string: cuda"
)
_SHIM = (
    r"transfer_to_(?:%s)|torch\.Tensor\.cuda and torch\.nn\.Module\.cuda are replaced with"
    r"|The torch\.cuda\.\* and torch\.cuda\.amp\.\* are replaced|torch_dipu[^\n]*\bmock|gpu_migration" % DEVICES
)

RULE = Rule(
    id="DDP213",
    slug="cuda-stands-for-another",
    cause="cuda_shim_misdetection",
    title="A plugin replaces torch.cuda for its own cards, and code that takes this for CUDA calls something that only CUDA has.",
    symptom="torch.cuda.is_available() is True, and then something that only NVIDIA has fails: NVML, nccl, torch._C._cuda_…, CUDA_HOME.",
    evidence=(
        "A card of the process has `shim`, the module that replaced torch.cuda, and the failure comes from CUDA itself. In a plain log: "
        "the plugin's notice that it replaces torch.cuda."
    ),
    remedy=(
        "Look for the vendor's module before CUDA (if importlib.util.find_spec('torch_npu') …), and use the vendor's backend and device type in "
        "place of 'nccl' and 'cuda' in code that the shim does not cover."
    ),
    restart="no",  # The same code takes the plugin for CUDA again.
    needs=("process.start",),
    printed=(Printed(_REAL, beside=_SHIM, says="A plugin has replaced torch.cuda, and a call needs something that only CUDA has."),),
    yields_to=("init-failure-swallowed",),
)


def check(run: Run) -> Iterator[Finding]:
    """Find a shim, and a failure of CUDA itself beside it."""
    lost = []
    for failure in run.failures:
        if failure.fatal and failure.process is not None and re.search(_REAL, failure.text):
            shim = _shim(failure.process)
            if shim is not None:
                lost.append((failure, failure.process, shim))
    if not lost:
        return
    first, process, card = lost[0]
    who = [failure.rank for failure, _, _ in lost if failure.rank is not None]
    yield RULE.found(
        ranks=who,
        verdict=say(
            "{module} replaces torch.cuda for {kind} cards, so torch.cuda.is_available() is True on {who}, and a call needs "
            "something that only CUDA has: {error}.",
            module=card.shim,
            kind=card.name,
            who=named(who),
            error=said(first),
        ),
        evidence=[_shown(process, card), *[failed(failure) for failure, _, _ in lost[:3]]],
        when=first.when,
        explains=[failure for failure, _, _ in lost],
    )


def _shim(process: LoggedProcess) -> Optional[schema.Card]:
    """Return a card whose plugin has replaced torch.cuda."""
    seen = [*process.started.accelerators, *(process.ended.accelerators if process.ended else [])]
    for wrap in process.calls(schema.Wrap):
        seen += wrap.begin.accelerators
    for wrap_model in process.calls(schema.WrapModel):
        seen += wrap_model.begin.accelerators
    return next((card for card in seen if card.shim), None)


def _shown(process: LoggedProcess, card: schema.Card) -> Evidence:
    return Evidence(process.file, 1, None, say("torch.cuda is replaced by {module}", module=card.shim))
