"""Reads the exceptions of children that launchers report."""

import re
from typing import Dict, List, Optional, Tuple

from ddp_probe.reading.failures import consequence
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Death, Failed, LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.schema import Failure

_RAY = re.compile(r"\(pid=(\d{1,10})[,)]")
_WHO = re.compile(r"^-- Process (\d{1,7}) terminated with the following error", re.MULTILINE)


def reported_failures(run: Run) -> Dict[int, Failed]:
    """Return the children's exceptions that only launchers report: multiprocessing catches them and passes their text to the parent."""
    by_rank: Dict[int, Failed] = {}
    first: Dict[str, Death] = {}
    for death in run.deaths:
        if death.first:
            first.setdefault(death.host, death)
    by_local = {(process.host, process.local_rank): process.rank for process in run.processes}
    for launcher in run.launchers:
        child = first.get(launcher.host)
        for failure, when, at in _raised(launcher):
            carried = _carried(failure, launcher)
            if failure.type.endswith("ProcessRaisedException"):
                rank = child.rank if child is not None else by_local.get((launcher.host, _named(failure)))
            else:
                rank = _of_pool(carried, failure, [process for process in run.processes if process.host == launcher.host])
            if rank is not None and carried is not None:  # torch 1.12 reports no pid
                carried.at, carried.when, carried.rank = at, when, rank
                by_rank[rank] = carried
    return by_rank


def _carried(failure: Failure, launcher: LoggedProcess) -> Optional[Failed]:
    """Return the exception whose traceback is text in another exception: in its message, or in that of its cause, as pools of Python do."""
    from ddp_probe.reading import text

    for message in filter(None, (failure.message, failure.cause_message)):
        lines = message.encode("utf-8", "replace").splitlines(keepends=True)
        raised = [failed for failed in text.read(lines, launcher.file).failures if failed.type]
        if raised:
            return raised[-1]
    return None


def _of_pool(carried: Optional[Failed], failure: Failure, processes: List[LoggedProcess]) -> Optional[int]:
    """Return the worker of a pool that raised it: the one that Ray names, else the only one that was in no call, or was in one if it lost another."""
    workers = [process for process in processes if process.started.role == "promoted" and process.end is None and process.rank is not None]
    named = _RAY.search(failure.message)
    if named is not None:
        workers = [process for process in workers if process.pid == int(named.group(1))]
    elif carried is not None:
        workers = [process for process in workers if _in_call(process) == bool(consequence(carried.text))]
    return workers[0].rank if len(workers) == 1 else None


def _in_call(process: LoggedProcess) -> bool:
    """Tell whether the last thing that a process did was a call in which it waited for others, or lost one."""
    kept = process.ledger
    if kept is None:
        return False
    last = [kept.last.state] if kept.last is not None else []
    return bool(set(last) & {"open", "raised"}) or any(phase.name == "backward" and phase.state in ("open", "raised") for phase in kept.phases)


def _named(failure: Failure) -> int:
    """Return the child that torch names in its message, or -1: a program that joins its children, like Lightning, does not report their ends."""
    match = _WHO.search(failure.message)
    return int(match.group(1)) if match else -1


def _raised(launcher: LoggedProcess) -> List[Tuple[Failure, float, LogLine]]:
    """Return the exceptions from starting or joining the children, caught or not."""
    calls = [call for call in launcher.calls(schema.LauncherGroup) if call.failure is not None]
    raised = [(call.failure, call.until or call.when, call.ended_at or call.at) for call in calls if call.failure is not None]
    if launcher.end is not None and launcher.end.failure is not None:
        raised.append((launcher.end.failure, launcher.last_when, launcher.last_at))
    return raised
