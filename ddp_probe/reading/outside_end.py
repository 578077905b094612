"""Finds the signal from outside that ended a run. What ranks do after it reached one of them does not tell where they stood before.

A person's Ctrl-C, a scheduler's limit and an eviction all look alike: the first sign is a launcher that was told to stop, a rank that was
interrupted, or a rank whose handler of the signal makes a call of its own, and nothing has failed before. From then on the ledgers of all ranks are
taken as they were at that moment.
"""

import re
from typing import Iterator, Optional

from ddp_probe.reading.failures import INTERRUPTED
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Death, LoggedProcess, OutsideEnd, Run
from ddp_probe.reading.rank_ledger import RankLedger
from ddp_probe.shared import schema

_UNWINDING = 2.0  # Seconds between the call that an interrupt ended and the end of its process.
_NUMBER = re.compile(r"got signal: (?P<number>\d{1,2})\b")
_NAMES = {"1": "SIGHUP", "2": "SIGINT", "3": "SIGQUIT", "15": "SIGTERM"}
_SENT = frozenset((*_NAMES.values(), "SIGKILL"))
_MOMENT = 1e-6
_LAST_STEPS = 2  # A rank that makes more after its handler was called had been told of something else than its end.
ENDED = "a signal from outside ended it"


def settle(run: Run) -> None:
    """Find the signal, and take each rank that was alive then as it was."""
    handled = list(_of_handlers(run))
    signs = sorted([*_of_launchers(run), *_of_ranks(run), *handled], key=lambda sign: sign.when)
    if not signs or _had_failed(run, signs[0]):
        return
    told = next((sign for sign in signs if sign.signal), signs[0])
    run.handled = handled
    run.outside = told._replace(when=signs[0].when - _MOMENT)
    for process in run.processes:
        if process.end is None or process.last_when >= run.outside.when:
            process.stand(run.outside.when)
            for failure in process.failures:
                if failure.when >= run.outside.when:
                    failure.consequence = failure.consequence or ENDED


def _of_launchers(run: Run) -> Iterator[OutsideEnd]:
    for launcher in run.launchers:
        told = launcher.first(schema.LauncherSignal)
        if told is not None:
            yield OutsideEnd(told.when, told.begin.signal, "the launcher", told.at)
            continue
        failure = launcher.end.failure if isinstance(launcher.end, schema.LauncherEnd) else None
        if failure is not None and failure.type.rpartition(".")[2] in ("SignalException", "KeyboardInterrupt"):
            number = _NUMBER.search(failure.message)
            name = _NAMES.get(number["number"], "") if number is not None else "SIGINT" if "Keyboard" in failure.type else ""
            yield OutsideEnd(launcher.last_when, name, "the launcher", launcher.last_at)


def _of_ranks(run: Run) -> Iterator[OutsideEnd]:
    for failure in run.failures:
        if failure.fatal and failure.consequence == INTERRUPTED and failure.process is not None and not failure.process.is_launcher:
            when = _unwound(failure.process, failure.when)
            yield OutsideEnd(when, "SIGINT", "rank %s" % failure.rank, failure.at)


def _of_handlers(run: Run) -> Iterator[OutsideEnd]:
    """Yield each rank whose handler made a call, such as Lightning's, which broadcasts that SIGTERM came, and which trained no further."""
    for process in run.processes:
        kept = process.ledger
        called = kept.handler if kept is not None else None
        name = _NAMES.get(str(called.signal)) if called is not None else None
        if kept is not None and called is not None and name is not None and _steps_since(kept, called.entered_ns) <= _LAST_STEPS:
            at = LogLine(process.ledger_file, called.number)
            yield OutsideEnd(kept.when(called.entered_ns) + process.offset, name, "rank %s" % process.rank, at, called)


def _steps_since(kept: RankLedger, when_ns: int) -> int:
    """Return how many steps ended after this time."""
    found, ended, count = kept.steps, kept.steps.ended_ns, 0
    for took in reversed(found.took):
        if ended <= when_ns:
            break
        ended, count = ended - 1000 * took, count + 1
    return count


def _unwound(process: LoggedProcess, when: float) -> float:
    """Return when the interrupt ended the call that the rank was in, which is a moment before the rank ended."""
    kept = process.ledger
    if kept is None:
        return when
    ended = [phase.left_ns for phase in kept.phases if phase.state == "raised"]
    ended += [record.left_ns for record in process.whole_ledger().records if record.state == "raised"]
    times = [kept.when(time) + process.offset for time in ended]
    return min([time for time in times if when - _UNWINDING <= time <= when], default=when)


def _had_failed(run: Run, first: OutsideEnd) -> bool:
    """Tell whether something had gone wrong before: then a launcher or a person may have ended the rest because of it."""
    if any(failure.fatal and not failure.consequence and failure.process is not None and failure.when < first.when for failure in run.failures):
        return True
    return any(_had_died(death, run.ranks.get(-1 if death.rank is None else death.rank), first) for death in run.deaths)


def _had_died(death: Death, process: Optional[LoggedProcess], first: OutsideEnd) -> bool:
    """Tell whether a rank had died before, by itself. Lightning's own broadcast may meet another call, for which gloo aborts the rank."""
    if not death.signal:
        return bool(death.exit_code) and (process.last_when if process is not None else 0.0) < first.when - _UNWINDING
    if death.signal in _SENT and (first.did is None or death.signal == first.signal):
        return False
    return process is None or _moved(process) < first.when


def _moved(process: LoggedProcess) -> float:
    """Return when a process has moved last."""
    kept = process.ledger
    return max(process.last_when, kept.moved + process.offset if kept is not None else 0.0)
