"""A line of the job asks for CUDA on a host without CUDA, or with a torch built without it."""

import re
from typing import Iterator, List, Optional

from ddp_probe.judging import change, wrap_calls
from ddp_probe.judging.no_cuda import IN_INIT_DIST, NO_CUDA, said
from ddp_probe.judging.rule import Finding, Printed, Rule, failed, first_of
from ddp_probe.judging.who import ranks
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, Run
from ddp_probe.shared import schema
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import listed, named, place, quoted

RULE = Rule(
    id="DDP203",
    slug="cuda-call-without-cuda",
    cause="cuda_call_on_non_cuda_host",
    title="The job calls CUDA on a host without usable CUDA, or with a torch built without it.",
    symptom=(
        "'Torch not compiled with CUDA enabled', 'Found no NVIDIA driver on your system', 'Cannot access accelerator device when none is available'."
    ),
    evidence=(
        "The exception says so, and its traceback shows the line of the job that asks for CUDA. If that is inside init_dist, see "
        "init-dist-took-cuda; if a plugin replaces torch.cuda for its own cards, cuda-stands-for-another."
    ),
    remedy=(
        "Ask for the device that exists: device = torch.device('cuda', local_rank) if torch.cuda.is_available() else torch.device('cpu'), "
        "or the accelerator's own type; .to(device) in place of .cuda()."
    ),
    restart="no",  # The code asks for CUDA whatever the host has.
    needs=("module.move", "device.set"),
    fix="set-device",
    printed=(Printed(NO_CUDA, unless=IN_INIT_DIST),),
    yields_to=("init-dist-took-cuda", "cuda-stands-for-another", "driver-mismatch", "init-failure-swallowed"),
)


def check(run: Run) -> Iterator[Finding]:
    """Find the calls of CUDA that ended a rank."""
    lost = [failure for failure in run.failures if failure.process is not None and failure.fatal and _is_it(failure)]
    if not lost:
        return
    first = lost[0]
    who = ranks(failure.process for failure in lost)
    call, card = _call(first), wrap_calls.card(first.process) if first.process is not None else None
    there: str = ""
    if card is not None and card.device_type != "cuda":
        there = say("; {cards}, which is not CUDA", cards=wrap_calls.seen(card))
    yield RULE.found(
        ranks=who,
        verdict=say(
            "{call} at {where} asks for CUDA on {who}, but this host has no CUDA that torch can use ({error}){there}.",
            call=_asked(call, lost),
            where=place(first.site),
            who=named(who),
            error=said(first),
            there=there,
        ),
        evidence=first_of([failed(failure) for failure in lost]),
        when=first.when,
        change=_change(call, card),
        explains=lost,
        fix=RULE.fix if call is not None and isinstance(call.begin, schema.SetDevice) else "",
    )


def _is_it(failure: Failed) -> bool:
    in_init_dist = any(isinstance(call.begin, schema.InitDist) for call in failure.calls) or re.search(IN_INIT_DIST, failure.trail)
    return bool(re.search(NO_CUDA, failure.text)) and not in_init_dist


def _call(failure: Failed) -> "Optional[LoggedCall[schema.Event]]":
    return failure.calls[0] if failure.calls else None


def _asked(call: "Optional[LoggedCall[schema.Event]]", lost: List[Failed]) -> Text:
    asked = call.begin if call is not None else None
    if isinstance(asked, schema.ModuleMove):
        return quoted("%s.%s(%s)" % (asked.model.rpartition(".")[2], asked.method, asked.destination))
    if not isinstance(asked, schema.SetDevice):
        return say("A call")
    numbers = set()
    for failure in lost:
        first = _call(failure)
        if failure.process and first is not None and isinstance(first.begin, schema.SetDevice):
            numbers.add((failure.process.local_rank, first.begin.device))
    devices = [device for _, device in numbers]
    if len(set(devices)) < 2:
        return quoted("%s(%s)" % (asked.target, asked.device))
    if all(str(local_rank) == device.rpartition(":")[2] for local_rank, device in numbers):
        return quoted("%s(LOCAL_RANK)" % asked.target)
    return say("{call}({devices})", call=asked.target, devices=listed(sorted(devices), 4))


def _change(call: "Optional[LoggedCall[schema.Event]]", card: Optional[schema.Card]) -> change.Change:
    """Return the change for a host without CUDA that keeps what a host with CUDA needs."""
    if call is not None and isinstance(call.begin, schema.ModuleMove) and call.begin.method == "cuda":
        other = "'%s'" % card.device_type if card is not None else "'cpu'"
        text = "$on.to($first if torch.cuda.is_available() else %s)" % other
        return [change.Rewritten(call.site, change.MOVE, text, ".cuda(…)", ("torch",), "$on.to('cuda' if torch.cuda.is_available() else %s)" % other)]
    if call is not None and isinstance(call.begin, schema.SetDevice):
        other = "%s.set_device($args)" % card.module if card is not None and card.module else ""
        return [change.Instead(call.site, change.SET_DEVICE, "torch.cuda.is_available()", (other,) if other else (), ("torch",), call.begin.target)]
    return []
