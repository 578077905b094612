"""Tells a process that does not run from one that stands: the kernel says so, or it has been silent while others told of a hang.

A rank that hangs still has a thread that says so, and a timer for when that thread cannot run. If neither has written anything, the process did
not run: SIGSTOP, Ctrl-Z, a debugger, a frozen container. Or C code held the GIL, and the timer was the job's own.
"""

import re
from typing import Dict, Optional

from ddp_probe.judging.ledgers import Standing, View
from ddp_probe.judging.words import clock, named
from ddp_probe.reading import alive, rank_stacks
from ddp_probe.reading.model import LoggedProcess, Run
from ddp_probe.shared import schema, settings

_LATE = 5.0  # Seconds by which the thread may be late on a busy machine.
_EARLY = 0.1  # Seconds by which two clocks that are read one after another may differ.
_STOPPED = ("T", "t")
_SAID = re.compile(r"process (?P<pid>\d{1,10}) is in state (?P<state>[Tt])\b")


def halted(run: Run, seen: View) -> Dict[int, str]:
    """Return the ranks whose process does not run, each with how that is known."""
    found = {
        rank: how for rank, one in seen.ranks.items() for how in [_stopped(run, one) or _was_stopped(run, one) or _silent(run, one, seen)] if how
    }
    return found if len(found) < len(seen.ranks) else {}


def _stopped(run: Run, standing: Standing) -> str:
    process = standing.process
    if standing.rank not in run.running or process.pid <= 0:
        return ""
    state = alive.state_of(process)
    return "is stopped (process %d is in state %s)" % (process.pid, state) if state in _STOPPED else ""


def _was_stopped(run: Run, standing: Standing) -> str:
    """Say what the launcher said while the job hung, of a process that is no more: the kernel tells the state of one that is there."""
    process = standing.process
    if standing.rank in run.running:
        return ""
    for launcher in run.launchers:
        told = launcher.final(schema.LauncherHang)
        found = _SAID.search(told.begin.said) if told is not None and told.when > standing.ledger.moved + process.offset else None
        if found is not None and int(found["pid"]) == process.pid and launcher.host == process.host:
            return "was stopped (process %s was in state %s)" % (found["pid"], found["state"])
    return ""


def _silent(run: Run, standing: Standing, seen: View) -> str:
    """Say that a rank was there and has written nothing."""
    death = run.death(standing.rank)
    if run.stands_until(standing.process) is None and (death is None or not death.signal):
        return ""  # It may have ended by itself at any time: nothing says that it was there until somebody ended it.
    return _unheard(standing, seen)


def _unheard(standing: Standing, seen: View) -> str:
    """Say since when a rank has written nothing although it should have said twice that it hangs, and others on its host have."""
    process, after = standing.process, _after(standing.process)
    if (
        after is None
        or standing.left is not None
        or not standing.known
        or process.full
        or process.holes
        or process.offset
        or process.count(schema.Fault)
    ):
        return ""
    moved = standing.ledger.moved
    if standing.until - moved < 2 * after + _LATE or process.last_when >= moved + after - _EARLY or _dumped(process, moved):
        return ""
    others = [rank for rank, one in seen.ranks.items() if rank != standing.rank and _speaks_of(one, process, moved + after)]
    if not others:
        return ""
    return "has not run since %s (its watcher has written nothing, and that of %s has)" % (clock(moved), named(others[:1]))


def _after(process: LoggedProcess) -> Optional[float]:
    after = settings.get(settings.HANG_AFTER, process.started.environment) if process.start is not None else None
    return float(after) if after is not None else None


def _speaks_of(other: Standing, process: LoggedProcess, since: float) -> bool:
    """Tell whether another rank on the host has written that it hangs, at a time when this one should have."""
    last = other.process.final(schema.HangSuspected)
    return last is not None and other.process.host == process.host and last.when >= since


def _dumped(process: LoggedProcess, moved: float) -> bool:
    dump = rank_stacks.dumped(process.file)
    return dump is not None and dump.when >= moved
