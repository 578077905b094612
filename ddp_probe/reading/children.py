"""The exceptions of children that launchers report."""

import re
from typing import Dict, List, Tuple

from ddp_probe.reading import text
from ddp_probe.reading.logged_call import LogLine
from ddp_probe.reading.model import Death, Failed, LoggedProcess, Run
from ddp_probe.shared import schema
from ddp_probe.shared.schema import Failure

_WHO = re.compile(r"^-- Process (\d{1,7}) terminated with the following error", re.MULTILINE)


def reported(run: Run) -> Dict[int, Failed]:
    """Return the children's exceptions that only launchers report: multiprocessing catches them and passes their text to the parent."""
    found: Dict[int, Failed] = {}
    first: Dict[str, Death] = {}
    for death in run.deaths:
        if death.first:
            first.setdefault(death.host, death)
    by_local = {(process.host, process.local_rank): process.rank for process in run.processes}
    for launcher in run.launchers:
        child = first.get(launcher.host)
        for failure, when, at in _raised(launcher):
            rank = child.rank if child is not None else by_local.get((launcher.host, _named(failure)))
            if rank is None or not failure.type.endswith("ProcessRaisedException"):
                continue
            log = text.read(failure.message.encode("utf-8", "replace").splitlines(keepends=True), launcher.file)
            raised = [failed for failed in log.failures if failed.type]
            if raised:  # torch 1.12 reports no pid
                raised[-1].at, raised[-1].when, raised[-1].rank = at, when, rank
                found[rank] = raised[-1]
    return found


def _named(failure: Failure) -> int:
    """Return the child that torch names in its message, or -1: a program that joins its children itself, as Lightning does, reports no end of one."""
    found = _WHO.search(failure.message)
    return int(found.group(1)) if found else -1


def _raised(launcher: LoggedProcess) -> List[Tuple[Failure, float, LogLine]]:
    """Return the exceptions from starting or joining the children, caught or not."""
    calls = [call for call in launcher.calls(schema.LauncherGroup) if call.failure is not None]
    found = [(call.failure, call.until or call.when, call.ended_at or call.at) for call in calls if call.failure is not None]
    if launcher.end is not None and launcher.end.failure is not None:
        found.append((launcher.end.failure, launcher.last_when, launcher.last_at))
    return found
