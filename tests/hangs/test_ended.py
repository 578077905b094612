"""Jobs that hang, ended from outside in every way that people and schedulers have: what was known while they hung is known afterwards."""

import os
import signal
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import pytest
from processes import kill_in, processes_in
from test_jobs_live import CASES, Case, Run, run  # noqa: F401  # a fixture is found by its name

from ddp_probe.diagnose import judge
from ddp_probe.read import load
from ddp_probe.report.source import own_line

_GRACE = 3.0  # Seconds between SIGTERM and SIGKILL.
_WINDS_DOWN = 40.0  # torchrun gives its ranks 30 s.


class Told(NamedTuple):
    """What a report says first of a run."""

    rule: str
    ranks: Tuple[int, ...]
    line: str


def _told(folder: str) -> Optional[Told]:
    found = judge(load([folder])).findings
    if not found:
        return None
    site = own_line(found[0])
    return Told(found[0].slug, tuple(found[0].ranks), "%s:%d" % (site.file, site.line) if site is not None else "")


def _to_group(number: int) -> Callable[[Run], None]:
    return lambda job: os.killpg(job.process.pid, number)


def _to_all(number: int) -> Callable[[Run], None]:
    """Signal the launcher and all that it started: newer ones give each rank a session of its own, which no terminal's Ctrl-C reaches."""

    def send(job: Run) -> None:
        for pid in processes_in(job.home):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    return send


def _twice(job: Run) -> None:
    os.killpg(job.process.pid, signal.SIGINT)
    time.sleep(1)
    if job.process.poll() is None:
        os.killpg(job.process.pid, signal.SIGINT)


def _then_killed(first: Callable[[Run], None]) -> Callable[[Run], None]:
    def send(job: Run) -> None:
        first(job)
        time.sleep(_GRACE)
        kill_in(job.home)

    return send


def _launcher_killed(job: Run) -> None:
    job.process.kill()
    job.process.wait()
    time.sleep(1)
    kill_in(job.home)


WAYS: Dict[str, Callable[[Run], None]] = {
    "Ctrl-C": _to_group(signal.SIGINT),
    "Ctrl-C twice": _twice,
    "SIGINT to each": _to_all(signal.SIGINT),
    "SIGTERM to the launcher": lambda job: job.process.send_signal(signal.SIGTERM),
    "SIGTERM to each": _to_all(signal.SIGTERM),
    "SIGHUP": _to_group(signal.SIGHUP),
    "SIGHUP to each": _to_all(signal.SIGHUP),
    "SIGQUIT": _to_group(signal.SIGQUIT),
    "docker stop": _then_killed(lambda job: job.process.send_signal(signal.SIGTERM)),
    "scancel": _then_killed(_to_all(signal.SIGTERM)),
    "SIGKILL of the launcher": _launcher_killed,
}


def _wind_down(job: Run) -> None:
    guard = time.monotonic() + _WINDS_DOWN
    while processes_in(job.home) and time.monotonic() < guard:
        job.process.poll()
        time.sleep(0.1)
    job.end()


_PAIRS: List[Any] = [pytest.param(case, way, id="%s, %s" % (case.id, way)) for case in CASES for way in WAYS]


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize(("case", "way"), _PAIRS)
def test_the_verdict_is_the_same_after_the_end(case: Case, way: str, request: Any) -> None:
    """The rule, the ranks and the line that a report gives of a job that hung are those that it gave while it hung, however it was ended."""
    job = request.getfixturevalue("run")
    job.wait()
    before = _told(job.folder)
    assert before is not None
    WAYS[way](job)
    _wind_down(job)
    assert _told(job.folder) == before
