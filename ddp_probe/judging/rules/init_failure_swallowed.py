"""The job caught a failure of init_process_group or set_device and continued: the symptoms come later, in another place."""

from itertools import chain
from typing import Any, Iterator, List, NamedTuple, Optional

from ddp_probe.judging.no_cuda import NO_CUDA, said
from ddp_probe.judging.rule import ERROR, WARNING, Finding, Printed, Rule, failed
from ddp_probe.judging.who import ranks_of
from ddp_probe.reading.failures import PEER_GONE
from ddp_probe.reading.logged_call import WATCHERS, LoggedCall
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import at, named, place, within

_SET_UP = (schema.InitDist, schema.InitProcessGroup, schema.SetDevice)
_OF_DEVICE = r"device_ids|must be on the same type of devices|CUDA|NVIDIA|accelerator|on the same device|invalid device"
_OF_GROUP = (
    r"process group|init_process_group|No backend type|not initialized|[Rr]endezvous|MASTER_|environment variable|KeyError: 'LOCAL_RANK'|%s"
) % _OF_DEVICE
_DEVICE_SYMPTOM, _GROUP_SYMPTOM = Expression(_OF_DEVICE), Expression(_OF_GROUP)
_NO_CUDA = Expression(NO_CUDA)
_WAITED = Expression(r"[Tt]imed? ?out|clients joined")


class Swallowed(NamedTuple):
    """A failure of init or set_device that the job survived at first."""

    failure: Failed
    call: "LoggedCall[Any]"
    process: LoggedProcess
    group: bool  # A process group existed anyway.
    symptoms: List[Failed]  # What failed later because of it, in this rank or in those that waited for it.
    alone: bool  # It went on without the others, and nothing failed.


def swallowed(run: Run) -> List[Swallowed]:
    """Return the failures that were caught and did harm, one a process."""
    firsts = [_first(run, process) for process in run.processes]
    return [first for first in firsts if first is not None and (first.symptoms or first.alone)]


def _first(run: Run, process: LoggedProcess) -> Optional[Swallowed]:
    for failure in process.failures:
        if failure.uncaught:
            continue
        call = next((call for call in failure.calls if isinstance(call.begin, _SET_UP)), None)
        if call is not None and _went_on(process, failure) and not _made_good(process, call):
            group = any(other.end is not None and other.failure is None for other in process.calls(schema.InitProcessGroup))
            symptoms = _symptoms(run, process, failure, call, group)
            return Swallowed(failure, call, process, group, symptoms, not symptoms and _alone(process, group))
    return None


def _went_on(process: LoggedProcess, failure: Failed) -> bool:
    """Tell whether the program made another call after it, ended well, or died of another exception that was not raised from it."""
    last_failure = process.ended.failure if process.ended is not None else None
    if last_failure is not None and last_failure.cause and failure.type.endswith(last_failure.cause):
        return False
    last = max(call.ended_at.line for call in failure.calls if call.ended_at is not None)
    ours = (schema.Coverage, schema.Warned, schema.Fault, schema.Restored, schema.Full, *WATCHERS)
    clean = (schema.DestroyProcessGroup, schema.ProcessExit, schema.ProcessEnd, *ours)
    if any(call.at.line > last and not isinstance(call.begin, clean) for call in process.every()):
        return True
    end = process.ended
    return end is not None and end.failure is None and not end.exit_code and not process.exit_code


def _made_good(process: LoggedProcess, call: "LoggedCall[Any]") -> bool:
    """Tell whether the same call succeeded later, or was not needed: nothing was lost."""
    if getattr(call.begin, "already_initialised", None):
        return True
    kinds = (schema.SetDevice,) if isinstance(call.begin, schema.SetDevice) else (schema.InitDist, schema.InitProcessGroup)
    after = [other for other in process.every() if isinstance(other.begin, kinds) and other.at.line > call.at.line]
    return any(other.end is not None and other.failure is None for other in after)


def _symptoms(run: Run, process: LoggedProcess, lost: Failed, call: "LoggedCall[Any]", group: bool) -> List[Failed]:
    """Return what failed later because of it; that it came later is not enough.

    In the rank itself it is what names the device that was not set, or asks for the group that was not made. In others it is the wait for a rank that
    is in no group.
    """
    fatal = [other for other in run.failures if other.fatal and other is not lost and other.when >= lost.when]
    if any(other.process is process for other in fatal):
        own = [other for other in fatal if other.process is process and not other.consequence]
        return [other for other in own if _of_the_device(call, other) or (not group and _of_the_group(other))]
    peers = [other for other in fatal if other.process is not process and other.process is not None]
    return [] if group else [other for other in peers if other.consequence == PEER_GONE or _WAITED.search(other.text)]


def _of_the_device(call: "LoggedCall[Any]", later: Failed) -> bool:
    """Tell whether a failure is about the device that was not set.

    A call that names another device fails with it as well, and so does the wrap of a model that is on the CPU of a host without cards.
    On a host without CUDA each call that needs it fails by itself.
    """
    if not isinstance(call.begin, schema.SetDevice) or not _DEVICE_SYMPTOM.search(later.text):
        return False
    if _NO_CUDA.search(later.text):
        return False
    wraps = [passed.begin for passed in later.calls if isinstance(passed.begin, schema.Wrap)]
    if "device_ids" in later.text and all(wrap.placement is None for wrap in wraps):
        return False  # DDP's own message, and the log does not have what DDP was given.
    if any(not wrap.accelerators and wrap.placement is not None and list(wrap.placement.devices) == ["cpu"] for wrap in wraps):
        return False
    asked = [wrap.device_ids for wrap in wraps if wrap.device_ids]
    number = call.begin.device.rpartition(":")[2]
    return not asked or not number or number in map(str, asked[0])


def _of_the_group(later: Failed) -> bool:
    """Tell whether a failure asks for the group that was not made."""
    asks = (schema.Wrap, schema.WrapModel, schema.InitProcessGroup, schema.SetDevice)
    return bool(_GROUP_SYMPTOM.search(later.text)) or any(isinstance(call.begin, asks) for call in later.calls)


def _alone(process: LoggedProcess, group: bool) -> bool:
    """Tell whether one of several ranks ends well without a wrap: without a group, or with one that it never closed."""
    end = process.ended
    several = (process.world_size or 1) > 1
    wrapped = any(call.end is not None and call.failure is None for call in process.calls(schema.Wrap))
    kept = process.ledger
    if kept is not None and any(calls.count for calls in kept.groups.values()):
        return False
    return end is not None and end.failure is None and several and not wrapped and (not group or end.process_group is True)


_SAYS_SO = (
    r"Not init distributed mode|(?:[Ff]ailed|FAILED|[Uu]nable|[Cc]ould not|[Cc]annot|[Ee]rror)[^\n]{0,12} (?:to |while |during )?"
    r"(?:init|initiali[sz]e|initiali[sz]ing|set(?:ting)? ?up|start)[^\n]{0,25}(?:distributed|process group|DDP"
    r"|NCCL)[^\n]{0,200}(?:[Ff]all(?:ing)? ?back|[Cc]ontinu|[Ss]ingle)"
)

RULE = Rule(
    id="DDP219",
    slug="init-failure-swallowed",
    cause="init_failure_swallowed",
    title="The job caught an exception from init_process_group or set_device, and continued without reporting it.",
    symptom=(
        "'Not init distributed mode.', and then DDP fails because of device_ids or because the process group was never created; or each rank "
        "trains alone and the job ends normally."
    ),
    evidence=(
        "A dist.init_process_group, device.set or mmengine.init_dist event ends in an error, later events of the same process show that it "
        "continued, no later call of the same kind succeeded, and the later failure follows from it."
    ),
    remedy=(
        "If WORLD_SIZE is more than 1, do not catch the exception: remove the try/except around init_process_group and set_device, "
        "or add a raise to it. Then fix what the exception says."
    ),
    restart="unknown",  # The exception that was caught decides, and it can be of any kind.
    needs=("dist.init_process_group", "device.set"),
    printed=(
        Printed(
            r"Default process group has not been initialized|device_ids and output_device arguments only work",
            beside=_SAYS_SO,
            unless=r"module parameters \{device\(type='cpu'\)\}",
            says="The log says that distributed mode was not set up, and the job continued to a failure that follows from it.",
        ),
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Find failures of the set-up that were caught and did harm."""
    all_caught = swallowed(run)
    if not all_caught:
        return
    first = all_caught[0]
    site = first.call.site
    where = place(site)
    inside = within(site.function) if site is not None else ""
    who = ranks_of(caught.process for caught in all_caught)
    symptoms = list(chain.from_iterable(caught.symptoms for caught in all_caught))
    what = {"device.set": "set_device", "mmengine.init_dist": "init_dist"}.get(first.call.name, "init_process_group")
    how = say("with a process group that exists anyway") if first.group else say("without a process group")
    yield RULE.found(
        ranks=who,
        verdict=say(
            "{call} failed at {where}{inside} on {who} ({error}), and the job caught it and continued {how}; {outcome}.",
            call=what,
            where=where,
            inside=inside,
            who=named(who),
            error=said(first.failure),
            how=how,
            outcome=_outcome(symptoms),
        ),
        evidence=[
            *[failed(one.failure, say("caught: {error}", error=said(one.failure))) for one in all_caught[:3]],
            *[failed(symptom) for symptom in symptoms[:1]],
        ],
        when=min(one.failure.when for one in all_caught),
        remedy=say(
            "If WORLD_SIZE is more than 1, do not catch the exception at {where}{inside}: remove the try/except around it, or add a raise to it. "
            "Then fix what it says: {error}.",
            where=where,
            inside=inside,
            error=said(first.failure),
        ),
        explains=[*[one.failure for one in all_caught], *symptoms],
        severity=ERROR if symptoms else WARNING,
    )


def _outcome(symptoms: List[Failed]) -> Text:
    if not symptoms:
        return say("each of these ranks then worked alone")
    return say("what fails later{where} follows from it", where=at(symptoms[0].site))
