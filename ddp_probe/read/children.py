"""The exceptions of children that launchers report."""

from typing import Dict, List, Tuple

from ddp_probe import schema
from ddp_probe.read import text
from ddp_probe.read.logged_call import LogLine
from ddp_probe.read.model import Death, Failed, LoggedProcess, Run
from ddp_probe.schema import Failure


def reported(run: Run) -> Dict[int, Failed]:
    """Return the children's exceptions that only launchers report: multiprocessing catches them and passes their text to the parent."""
    found: Dict[int, Failed] = {}
    first: Dict[str, Death] = {}
    for death in run.deaths:
        if death.first:
            first.setdefault(death.host, death)
    for launcher in run.launchers:
        child = first.get(launcher.host)
        for failure, when, at in _raised(launcher):
            if child is None or child.rank is None or not failure.type.endswith("ProcessRaisedException"):
                continue
            log = text.read(failure.message.encode("utf-8", "replace").splitlines(keepends=True), launcher.file)
            raised = [failed for failed in log.failures if failed.type]
            if raised:  # torch 1.12 reports no pid
                raised[-1].at, raised[-1].when, raised[-1].rank = at, when, child.rank
                found[child.rank] = raised[-1]
    return found


def _raised(launcher: LoggedProcess) -> List[Tuple[Failure, float, LogLine]]:
    """Return the exceptions from starting or joining the children, caught or not."""
    calls = [call for call in launcher.calls(schema.LauncherGroup) if call.failure is not None]
    found = [(call.failure, call.until or call.when, call.ended_at or call.at) for call in calls if call.failure is not None]
    if launcher.end is not None and launcher.end.failure is not None:
        found.append((launcher.end.failure, launcher.last_when, launcher.last_at))
    return found
