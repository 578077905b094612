"""What launchers tell of the exceptions of their children."""

from typing import Dict

from ddp_probe.read import text
from ddp_probe.read.model import Failed, Run


def told(run: Run) -> Dict[int, Failed]:
    """Return what launchers tell of children whose exception never reached the top: multiprocessing catches it, and hands its text to the parent."""
    found: Dict[int, Failed] = {}
    for launcher in run.launchers:
        failure = launcher.end.failure if launcher.end is not None else None
        child = next((death for death in run.deaths if death.first and death.host == launcher.host), None)
        if failure is None or child is None or not failure.type.endswith("ProcessRaisedException"):
            continue
        log = text.read(failure.message.encode("utf-8", "replace").splitlines(keepends=True), launcher.file)
        raised = [failed for failed in log.failures if failed.type]
        if raised and child.rank is not None:  # torch 1.12 tells no pid
            raised[-1].at, raised[-1].when, raised[-1].rank = launcher.last_at, launcher.last_when, child.rank
            found[child.rank] = raised[-1]
    return found
