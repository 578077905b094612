"""Finds failures of the set-up that the job caught before it continued, and what followed: symptoms later, in another place."""

import re
from typing import Any, List, NamedTuple, Optional

from ddp_probe.reading.logged_call import WATCHERS, LoggedCall
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.shared import schema

_SET_UP = (schema.InitDist, schema.InitProcessGroup, schema.SetDevice)
_SYMPTOM = re.compile(
    r"process group|init_process_group|device_ids|No backend type|must be on the same type of devices|CUDA|NVIDIA|accelerator|on the same device"
    r"|invalid device|not initialized|[Rr]endezvous|MASTER_|environment variable|KeyError: 'LOCAL_RANK'"
)
_WAITED = re.compile(r"[Tt]imed? ?out|clients joined")


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
    return [found for process in run.processes for found in [_first(run, process)] if found is not None and (found.symptoms or found.alone)]


def _first(run: Run, process: LoggedProcess) -> Optional[Swallowed]:
    for failure in process.failures:
        if failure.uncaught:
            continue
        call = next((call for call in failure.calls if isinstance(call.begin, _SET_UP)), None)
        if call is not None and _went_on(process, failure) and not _made_good(process, call):
            group = any(made.end is not None and made.failure is None for made in process.calls(schema.InitProcessGroup))
            symptoms = _symptoms(run, process, failure)
            return Swallowed(failure, call, process, group, symptoms, not symptoms and _alone(process, group))
    return None


def _went_on(process: LoggedProcess, failure: Failed) -> bool:
    """Tell whether the program made another call after it, ended well, or died of another exception that was not raised from it."""
    told = process.ended.failure if process.ended is not None else None
    if told is not None and told.cause and failure.type.endswith(told.cause):
        return False
    last = max(call.ended_at.line for call in failure.calls if call.ended_at is not None)
    ours = (schema.Coverage, schema.Warned, schema.Fault, schema.Restored, schema.Full, *WATCHERS)
    clean = (schema.DestroyProcessGroup, schema.ProcessEnd, *ours)
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


def _symptoms(run: Run, process: LoggedProcess, failure: Failed) -> List[Failed]:
    fatal = [other for other in run.failures if other.fatal and other is not failure and other.when >= failure.when]
    own = [other for other in fatal if other.process is process and not other.consequence and (_SYMPTOM.search(other.text) or _in_set_up(other))]
    if own or any(other.process is process for other in fatal):
        return own
    peers = [other for other in fatal if other.process is not process and other.process is not None]
    return [other for other in peers if other.consequence or _WAITED.search(other.text)]


def _in_set_up(failure: Failed) -> bool:
    return any(isinstance(call.begin, (schema.Wrap, schema.WrapModel, schema.InitProcessGroup, schema.SetDevice)) for call in failure.calls)


def _alone(process: LoggedProcess, group: bool) -> bool:
    """Tell whether one of several ranks ends well without a wrap: without a group, or with one that it never closed."""
    end = process.ended
    several = (process.world_size or 1) > 1
    wrapped = any(call.end is not None and call.failure is None for call in process.calls(schema.Wrap))
    return end is not None and end.failure is None and several and not wrapped and (not group or end.process_group is True)
