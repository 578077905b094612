"""Collects failures: each exception of each process once, with the calls it passed through and how it ended."""

from typing import Any, Dict, List, Mapping, Optional, Tuple

import msgspec

from ddp_probe.reading.job_line import inside, job_line, nested_line
from ddp_probe.reading.logged_call import LoggedCall, LogLine
from ddp_probe.reading.model import Failed, LoggedProcess, Run
from ddp_probe.reading.went_on import went_on
from ddp_probe.shared import schema
from ddp_probe.shared.mask_forms import Expression
from ddp_probe.shared.schema import Failure, Site

# What a rank prints after a peer or its launcher has failed: never the first failure.
_PEER = Expression(
    r"Connection (closed|reset) by (remote )?peer|Broken pipe|Socket closed|recvValue failed|sendBytes failed|remote process exited"
    r"|NCCL communicator was aborted(?![^\n]{0,400}(?:[Ww]atchdog caught|Timeout\(ms\)))|Failed to recv, got 0 bytes|ncclRemoteError"
)
_LAUNCHER = Expression(
    r"^(\w+\.)*(ChildFailedError|ProcessExitedException|ProcessRaisedException|CalledProcessError|SignalException|RayTaskError)\b"
    r"|closing signal SIGTERM|received by PID \d+|failed \(exitcode: -?\d+\) local_rank:|exits with return code|Killing subprocess \d+"
    r"|srun: error: .{0,300}Exited with exit code|slurmstepd: .{0,300}CANCELLED"
)

# The arguments of an exception that the parser raised: what it says, and of which line.
_SYNTAX = ("SyntaxError", "IndentationError", "TabError")
_BROKEN = Expression(r"""\((?P<quote>['"])(?P<says>.{1,500}?)(?P=quote), \('(?P<file>[^'\n]{1,1000})', (?P<line>\d{1,7}), """)

INTERRUPTED, PEER_GONE, BY_LAUNCHER = "a person interrupted it", "a peer is gone", "the launcher ended it"
"""What `consequence` may be: whose failure an exception reports."""
_ENDS = (schema.ProcessEnd, schema.LauncherEnd)  # Their site is the line of the exit call.


def collect(run: Run, reported: Mapping[int, Failed]) -> List[Failed]:
    """Return all failures, earliest first. Failures from plain logs, with the line number as the time, come after those of the probe.

    If no rank left a file, failures of launchers that came from no child belong to the run.
    `reported` has the children's exceptions that launchers reported, by rank.
    """
    lost = any(_has_failed(launcher) for launcher in run.launchers)
    for process in run.processes:
        process.failures = sorted(_of(process, reported.get(-1 if process.rank is None else process.rank), lost), key=lambda failed: failed.when)
    for launcher in () if run.processes else run.launchers:
        launcher.failures = [failed for failed in _of(launcher, None, lost=False) if not consequence(failed.text)]
    failures: List[Failed] = []
    for process in run.processes or run.launchers:
        failures += process.failures
    failures.sort(key=lambda failed: failed.when)
    for log in run.texts:
        failures.extend(log.failures)
    for failed in failures:
        failed.consequence = failed.consequence or consequence(failed.text)
    return failures


def _may_have_ended(failed: Failed, process: LoggedProcess, survived: bool, lost: bool) -> bool:
    """Return whether a failure that was caught may be what the process ended by: nothing shows that it did anything else since."""
    return not (survived or _outlived(failed, process)) or (lost and _last_words(failed, process))


def _has_failed(launcher: LoggedProcess) -> bool:
    """Return whether the launch failed, even if the launching program caught the exception."""
    if launcher.end is not None and (launcher.end.failure is not None or getattr(launcher.end, "exit_code", None)):
        return True
    return any(call.failure is not None for call in launcher.calls(schema.LauncherGroup))


def consequence(words: str) -> str:
    """Return what an exception reports about another process; empty if it is an original failure."""
    if words.startswith("KeyboardInterrupt"):
        return INTERRUPTED
    if _LAUNCHER.search(words):
        return BY_LAUNCHER
    return PEER_GONE if _PEER.search(words) else ""


def _of(process: LoggedProcess, reported: Optional[Failed], lost: bool) -> List[Failed]:
    failures: Dict[Tuple[str, str], Failed] = {}
    calls = [call for call in process.kept.failed(process.offset) if call.until is not None and not isinstance(call.begin, schema.ProcessEnd)]
    for call in sorted(calls, key=lambda call: (call.until or 0.0, -call.at.line)):
        failure = call.failure
        assert failure is not None
        key = (failure.type, failure.message)
        if key not in failures:
            failures[key] = _new(process, failure, call.until or 0.0, call.ended_at or call.at)
        failures[key].calls.append(call)
        failures[key].site = failures[key].site or call.site
    last = process.end
    if last is not None and last.failure is not None:
        key = (last.failure.type, last.failure.message)
        when, at = process.over
        failed = failures.get(key) or _new(process, last.failure, when, at)
        failures[key] = failed
        failed.uncaught = True
        failed.frames = _new(process, last.failure, 0.0, at).frames or failed.frames
        failed.site = failed.site or job_line(failed.frames) or last.site  # It was raised there; the exit call may be elsewhere.
        failed.calls = failed.calls or _passed(process, failed)
    if reported is not None:
        _add(process, reported, failures)
    survived = process.exit_code == 0 or (process.end is not None and process.exit_code is None)
    for failed in failures.values():
        failed.fatal = failed.uncaught or (not went_on(failed, process) and _may_have_ended(failed, process, survived, lost))
        failed.site = nested_line(failed.message) or failed.site or job_line(failed.frames)
    return list(failures.values())


def _passed(process: LoggedProcess, failed: Failed) -> List[LoggedCall[Any]]:
    """Return the calls that an exception passed through, innermost first, if no line says how they ended."""
    lines = {(frame.file, frame.line) for frame in failed.frames}
    passed: List[LoggedCall[Any]] = []
    for call in process.kept.without_line_after(process.offset):
        if call.site is not None and (call.site.file, call.site.line) in lines:
            passed.insert(0, msgspec.structs.replace(call, until=failed.when))
    return passed


def _add(process: LoggedProcess, reported: Failed, failures: Dict[Tuple[str, str], Failed]) -> None:
    """Add what the launcher reports about a process; in most cases a watched call has already logged the exception."""
    for failed in failures.values():
        if failed.type.rpartition(".")[2] == reported.type.rpartition(".")[2] and failed.message[:200] == reported.message[:200]:
            failed.uncaught = True
            return
    reported.process, reported.uncaught, reported.consequence = process, True, ""
    failures[(reported.type, reported.message)] = reported


def _last_words(failed: Failed, process: LoggedProcess) -> bool:
    """Return whether this was the last call in a failed launch, with the exit code unknown, as with children of mp.spawn."""
    if process.exit_code is not None or process.end is None:
        return False
    calls = [call for call in process.every() if not call.name.startswith(("process.", "probe.")) and not call.is_watchers]
    return bool(calls) and any(call == calls[-1] for call in failed.calls)


def _outlived(failed: Failed, process: LoggedProcess) -> bool:
    """Return whether the process caught this failure and later ended by an unrelated one."""
    last = process.end.failure if process.end is not None else None
    return last is not None and not (last.cause and failed.type.endswith(last.cause))


def _new(process: LoggedProcess, failure: Failure, when: float, at: LogLine) -> Failed:
    failed = Failed(rank=process.rank, when=when, at=at, type=failure.type, message=failure.message)
    failed.process = process
    failed.frames = list(failure.frames)
    broken = _BROKEN.match(failure.message) if failure.type in _SYNTAX else None
    if broken is not None:  # The traceback ends at the import; Python prints the broken line below it.
        failed.message = broken["says"]
        failed.frames.append(Site(broken["file"], int(broken["line"]), ""))
    failed.inside = inside(failure.message, failure.cause_message, failure.cause)
    return failed
