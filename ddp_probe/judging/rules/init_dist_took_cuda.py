"""init_dist of mmengine or mmcv calls torch.cuda.set_device on a host without CUDA, with any backend."""

import re
from typing import Any, Iterator, List, Tuple

from ddp_probe.judging import own_group
from ddp_probe.judging.no_cuda import IN_INIT_DIST, NO_CUDA, said
from ddp_probe.judging.rule import Evidence, Finding, Printed, Rule, failed, shown
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import say
from ddp_probe.wording.words import at, named, quoted

RULE = Rule(
    id="DDP201",
    slug="init-dist-took-cuda",
    cause="cuda_call_on_non_cuda_host",
    title="init_dist took its CUDA branch on a host without CUDA.",
    symptom=(
        "'Found no NVIDIA driver', \"no attribute '_cuda_setDevice'\" or 'Torch not compiled with CUDA enabled' in _init_dist_pytorch, "
        "even with backend gloo or a vendor's backend."
    ),
    evidence=(
        "The mmengine.init_dist event says which branch it takes and why, and ends in an error of torch.cuda.set_device. If a line of the job makes "
        "the call, see cuda-call-without-cuda."
    ),
    remedy="If there is no CUDA, make the process group yourself: torch.distributed.init_process_group('gloo') on a CPU run, otherwise the "
    "vendor's backend after the vendor's set_device. Do this before you build a Runner, which uses an existing group, or instead of a bare "
    "init_dist. Under SLURM and MPI first set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, as init_dist does.",
    restart="no",  # init_dist takes the same branch on every host without CUDA.
    needs=("mmengine.init_dist",),
    fix="set-device",
    printed=(Printed(NO_CUDA, beside=IN_INIT_DIST, says="init_dist calls torch.cuda.set_device, and this host has no usable CUDA."),),
    yields_to=("init-failure-swallowed",),
)

_ASKS_FOR_NONE = say("It does not ask for another accelerator.")


def check(run: Run) -> Iterator[Finding]:
    """Find the init_dist calls that failed in torch.cuda.set_device."""
    lost: List[Tuple[Failed, LoggedCall[Any]]] = []
    for failure in run.failures:
        if failure.fatal and re.search(NO_CUDA, failure.text):
            calls = [call for call in failure.calls if isinstance(call.begin, schema.InitDist)]
            lost += [(failure, call) for call in calls if call.begin.branch in ("cuda", "")]
    if not lost:
        return
    failure, first = lost[0]
    process = failure.process
    assert process is not None
    who = [each.rank for each, _ in lost if each.rank is not None]
    sets = [call for call in failure.calls if isinstance(call.begin, schema.SetDevice)]
    frame = sets[0].begin.through[-1] if sets and sets[0].begin.through else None
    inside = None
    if frame is not None:
        inside = schema.Site(frame.file.rpartition("site-packages/")[2], frame.line, frame.function)
    because = quoted(first.begin.branch_because) if first.begin.branch_because else _ASKS_FOR_NONE
    yield RULE.found(
        ranks=who,
        verdict=say(
            "init_dist called torch.cuda.set_device{where} on {who}, with backend {backend}, but this host has no usable CUDA ({error}). {because}",
            where=at(inside),
            who=named(who),
            backend=first.begin.backend or say("unknown"),
            error=said(failure),
            because=because,
        ),
        evidence=[*[_branch(call) for _, call in lost[:2]], *[failed(each) for each, _ in lost[:2]]],
        when=min(call.when for _, call in lost),
        change=own_group.instead_of_init_dist(process, first),
        explains=[each for each, _ in lost],
    )


def _branch(call: "LoggedCall[schema.InitDist]") -> Evidence:
    branch, because = call.begin.branch or say("unknown"), quoted(call.begin.branch_because)
    return shown(call, say("branch {branch}: {because}", branch=branch, because=because))
