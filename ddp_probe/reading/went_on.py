"""Tells whether a process that caught a failure worked on after it: a failure that was survived is not what ended or hung the process later.

It takes work to show that: a call that sets something up, a step, a collective, a line of the job at which it was found later. What a program
does on its way out, such as a last save and the end of its group, shows nothing.
"""

from typing import Any, Iterator, List, Optional

from ddp_probe.reading.job_line import job_line
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, LoggedProcess
from ddp_probe.reading.rank_stacks import main_frames
from ddp_probe.shared import schema

_SETS_UP = (
    schema.InitDist,
    schema.InitProcessGroup,
    schema.NewGroup,
    schema.SetDevice,
    schema.ModuleMove,
    schema.WrapModel,
    schema.Wrap,
    schema.Load,
)
_WORK = frozenset(("train", "dataloader", "forward", "backward", "optimizer", "validate", "test"))
_LAST = "destroy_process_group"


def went_on(failed: Failed, process: LoggedProcess) -> bool:
    """Tell whether a process did other work after a failure that it had caught."""
    if failed.uncaught or failed.consequence or not failed.calls:
        return False
    return _made_a_call(failed, process) or _trained(failed, process) or _was_seen(failed, process)


def _made_a_call(failed: Failed, process: LoggedProcess) -> bool:
    last = max(call.line_after or call.line for call in failed.calls)
    return any(call.line > last and _is_work(call) for call in process.every())


def _is_work(call: "LoggedCall[Any]") -> bool:
    """Tell whether a call leads into training; a model that is sent back to the CPU may be on its way to a last save."""
    return isinstance(call.begin, _SETS_UP) and getattr(call.begin, "destination", "") != "cpu"


def _trained(failed: Failed, process: LoggedProcess) -> bool:
    """Tell whether the ledger holds a collective or a phase of training that began after it."""
    kept = process.ledger
    return kept is not None and any(kept.when(began) + process.offset > failed.when for began in _begun(process))


def _begun(process: LoggedProcess) -> Iterator[int]:
    kept = process.ledger
    if kept is None:
        return
    yield from (calls.last.entered_ns for calls in kept.groups.values() if calls.last is not None and calls.last.op != _LAST)
    yield from (phase.entered_ns for phase in kept.phases if phase.name in _WORK)


def _was_seen(failed: Failed, process: LoggedProcess) -> bool:
    """Tell whether the process was found at a line of the job later, and not at the end of its group."""
    looks: List[Optional[LoggedCall[Any]]] = [process.final(schema.HangSuspected), process.final(schema.Stacks)]
    for look in looks:
        frames = main_frames(look.begin.threads) if look is not None and look.when > failed.when else []
        if job_line(frames) is not None and not any(_LAST in frame.function for frame in frames):
            return True
    return False
