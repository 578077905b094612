"""Finds the signal from outside that ended a run. What ranks do after it reached one of them does not tell where they stood before.

A person's Ctrl-C, a scheduler's limit and an eviction all look alike: the first sign is a launcher that was told to stop, or a rank that was
interrupted, and nothing has failed before. From then on the ledgers of all ranks are taken as they were at that moment.
"""

import re
from typing import Iterator

from ddp_probe.reading.failures import INTERRUPTED
from ddp_probe.reading.model import LoggedProcess, OutsideEnd, Run
from ddp_probe.shared import schema

_UNWINDING = 2.0  # Seconds between the call that an interrupt ended and the end of its process.
_NUMBER = re.compile(r"got signal: (?P<number>\d{1,2})\b")
_NAMES = {"1": "SIGHUP", "2": "SIGINT", "3": "SIGQUIT", "15": "SIGTERM"}
_SENT = frozenset((*_NAMES.values(), "SIGKILL"))
_MOMENT = 1e-6
ENDED = "a signal from outside ended it"


def settle(run: Run) -> None:
    """Find the signal, and take each rank that was alive then as it was."""
    signs = sorted([*_of_launchers(run), *_of_ranks(run)], key=lambda sign: sign.when)
    if not signs or _had_failed(run, signs[0].when):
        return
    told = next((sign for sign in signs if sign.signal), signs[0])
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


def _unwound(process: LoggedProcess, when: float) -> float:
    """Return when the interrupt ended the call that the rank was in, which is a moment before the rank ended."""
    kept = process.ledger
    if kept is None:
        return when
    ended = [phase.left_ns for phase in kept.phases if phase.state == "raised"]
    ended += [record.left_ns for record in process.whole_ledger().records if record.state == "raised"]
    times = [kept.when(time) + process.offset for time in ended]
    return min([time for time in times if when - _UNWINDING <= time <= when], default=when)


def _had_failed(run: Run, when: float) -> bool:
    """Tell whether something had gone wrong before: then a launcher or a person may have ended the rest because of it."""
    if any(failure.fatal and not failure.consequence and failure.process is not None and failure.when < when for failure in run.failures):
        return True
    lives = {process.rank: process.last_when for process in run.processes}
    for death in run.deaths:
        if death.signal not in _SENT if death.signal else death.exit_code and lives.get(death.rank, 0.0) < when - _UNWINDING:
            return True
    return False
