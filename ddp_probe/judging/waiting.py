"""Tells ranks that waited for others from ranks that failed: since when, in which call, and what the others did."""

from typing import List, Optional

from ddp_probe.judging.vendor_words import COMMUNICATION
from ddp_probe.reading.logged_call import LoggedCall
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.shared.own_code import foreign
from ddp_probe.wording.text import Text, say
from ddp_probe.wording.words import clock, place

TIMED_OUT = Expression(
    r"Timed out waiting (?P<ms>\d+) ?ms for (?:recv|send) operation|Application timeout caused pair closure"  # gloo's own words for both.
    r"|[Cc]ollective operation timeout:[^\n]{0,400}?Timeout\(ms\)=(?P<ms2>\d+)"
    r"|[Cc]ollective operation timeout|wait timeout after (?P<ms3>\d+) ?ms"
    r"|failed to pass monitoredBarrier|Timed out after \d+ ?(?:ms|s)[^\n]{0,300}collective"
    r"|(?<![NR])(?:%s|ACL|notify)[^\n]{0,300}(?:time ?out|timed out)|Connection timed out|Socket Timeout" % COMMUNICATION
)

_NEW_GROUP = Expression(r"Timed out initializing process group in store based barrier on rank\b")
"""What new_group raises, in old versions of torch, if a rank does not call it."""
_UNREACHED = Expression(r"[Cc]onnect[^\n]{0,200}(?:refused|timed out)")


def of_others(failure: Failed) -> bool:
    """Tell whether a rank says only that others do not answer."""
    return bool(failure.consequence or TIMED_OUT.search(failure.text) or _UNREACHED.search(failure.text))


def waited(failure: Failed) -> bool:
    """Tell whether a rank that had joined the group stopped waiting for another."""
    if failure.process is None or not joined(failure.process) or starting(failure):
        return False
    return TIMED_OUT.search(failure.text) is not None or _NEW_GROUP.search(failure.text) is not None


def starting(failure: Failed) -> bool:
    """Tell whether the group was still being made: a rank can then be missing because of the network or the launch."""
    return any(isinstance(call.begin, (schema.InitProcessGroup, schema.InitDist)) for call in failure.calls)


def joined(process: LoggedProcess) -> bool:
    """Tell whether a process had become a member of the group."""
    return any(call.end is not None and call.failure is None for call in process.calls(schema.InitProcessGroup))


def milliseconds(failure: Failed) -> Optional[int]:
    """Return how long a rank waited, as its exception says."""
    match = TIMED_OUT.search(failure.text)
    value = next((value for value in match.groupdict().values() if value), None) if match else None
    return int(value) if value is not None and len(value) < 12 else None


def stood(failure: Failed) -> Text:
    """Say where a rank was when it stopped waiting: the line of the job, and the library call that it made there."""
    called = call_of(failure)
    if called:
        return say("at {where} in {function}", where=place(failure.site), function=called)
    return say("at {where}", where=place(failure.site))


def call_of(failure: Failed) -> str:
    """Return the first public name behind the job's line; wrappers and private functions of torch do not count."""
    behind = list(failure.frames)
    if failure.site in behind:
        last = len(behind) - 1 - behind[::-1].index(failure.site)
        behind = behind[last + 1 :]
    names = (frame.function.rpartition(".")[2] for frame in behind if foreign(frame.file))
    return next((name for name in names if not name.startswith(("_", "<")) and name not in ("wrapper", "wrapped", "inner", "decorate_context")), "")


def since(failure: Failed) -> Text:
    """Say for how long a rank waited, and since when."""
    gave_up = milliseconds(failure)
    if gave_up is None:
        return say("until {when}", when=clock(failure.when))
    return say("for {seconds:.1f} s, since {when}", seconds=gave_up / 1000, when=clock(failure.when - gave_up / 1000))


def last_seen(process: LoggedProcess) -> Text:
    """Say what a process did last by its log and its ledger, and how it ended."""
    return say("{does}{end}", does=last_done(process), end=_ended(process))


def last_done(process: LoggedProcess) -> Text:
    """Say what a process did last by its log and its ledger."""
    call, collective = _last_call(process), process.ledger.last if process.ledger is not None else None
    if collective is not None and collective.site is not None and process.ledger is not None:
        moved = process.ledger.when(collective.entered_ns if collective.is_open else collective.left_ns) + process.offset
        if moved > (call.until or call.when if call is not None else process.start_when):
            return _silent_since(collective.op, collective.state, moved, schema.Site(*collective.site[:3]))
    if call is None:
        return say("wrote nothing after its start at {when}", when=clock(process.start_when))
    if call.open:
        state = "open"
    elif call.failure is not None:
        state = "raised"
    else:
        state = "returned"
    return _silent_since(call.name, state, call.until or call.when, call.site)


def _ended(process: LoggedProcess) -> str:
    if process.signal == "SIGTERM":
        return say(" and was ended by its launcher")
    return say(" and was ended by {signal}", signal=process.signal) if process.signal else ""


def _silent_since(call: str, state: str, when: float, site: Optional[schema.Site]) -> Text:
    if state == "open":
        template = "wrote nothing after {call} began at {when} ({where})"
    elif state == "raised":
        template = "wrote nothing after {call} failed at {when} ({where})"
    else:
        template = "wrote nothing after {call} ended at {when} ({where})"
    return say(template, call=call, when=clock(when), where=place(site))


def _last_call(process: LoggedProcess) -> "Optional[LoggedCall[schema.Event]]":
    marks = (schema.ProcessStart, schema.ProcessExit, schema.ProcessEnd, schema.Coverage)
    calls = [call for call in process.every() if not isinstance(call.begin, marks) and not call.is_watchers]
    return max(calls, key=lambda call: call.until or call.when) if calls else None


def others(run: Run, failures: List[Failed]) -> List[LoggedProcess]:
    """Return the ranks that none of these failures is of."""
    known = {id(failure.process) for failure in failures}
    return [process for process in run.processes if process.rank is not None and id(process) not in known]
