"""Jobs that hang, ended from outside in every way that people and schedulers have: what was known while they hung is known afterwards."""

import os
import shlex
import signal
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import pytest
from processes import kill_in, processes_in
from test_jobs_live import CASES, Case, Run, run, start  # noqa: F401  # a fixture is found by its name

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import load
from ddp_probe.showing.source import own_line

_PROGRAMS = Path(__file__).parent / "programs"
_GRACE = 3.0  # Seconds between SIGTERM and SIGKILL.
_WINDS_DOWN = 40.0  # torchrun gives its ranks 30 s.


class Told(NamedTuple):
    """What a report says first of a run."""

    rule: str
    ranks: Tuple[int, ...]
    line: str


def told(folder: str) -> Optional[Told]:
    """Return what is said first, beside the signal: a hang that may yet be none, such as a long evaluation, comes after it."""
    found = [finding for finding in judge(load([folder])).findings if finding.slug != "ended-from-outside"]
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


def wind_down(job: Run) -> None:
    """Wait until nothing of a job is left, and end what stays."""
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
    before = told(job.folder)
    assert before is not None
    WAYS[way](job)
    wind_down(job)
    assert told(job.folder) == before


@pytest.fixture
def launched(armed: Callable[..., Dict[str, str]], free_port: Callable[[], int], tmp_path: Path) -> Iterator[Callable[[str], Run]]:
    """Start two ranks of a program, and end what is left of them."""
    jobs: List[Run] = []

    def launch(program: str) -> Run:
        line = "torchrun --nproc_per_node=2 --master_addr=127.0.0.1 --master_port=%d %s" % (free_port(), shlex.quote(str(_PROGRAMS / program)))
        jobs.append(start(line, tmp_path, armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="5")))
        return jobs[-1]

    yield launch
    for job in jobs:
        job.end()


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize("way", WAYS)
def test_a_healthy_job_that_is_ended_has_no_guilty_line(way: str, launched: Callable[[str], Run]) -> None:
    """The report of a healthy job that was ended names the signal, or says that nothing shows what ended it, and blames no line of the job."""
    job = launched("goes_on.py")
    job.wait("goes on")
    WAYS[way](job)
    wind_down(job)
    found = judge(load([job.folder]))
    assert [finding.slug for finding in found.findings] == (["ended-from-outside"] if way != "SIGKILL of the launcher" else [])
    assert found.verdict == "found" if found.findings else "undecided"
    assert [own_line(finding) for finding in found.findings] == [None] * len(found.findings)


@pytest.mark.slow
def test_tags_that_differ_are_told_while_it_hangs_and_afterwards(launched: Callable[[str], Run]) -> None:
    """Of a send and a recv with other tags, both lines are named with what no ledger holds, and so they are after the job was ended."""
    job = launched("other_tag.py")
    job.wait()
    before = told(job.folder)
    assert before is not None
    assert (before.rule, before.ranks) == ("point-to-point-without-partner", (0, 1))
    WAYS["SIGTERM to the launcher"](job)
    wind_down(job)
    assert told(job.folder) == before


@pytest.mark.slow
def test_the_call_under_the_if_is_shown_and_not_where_the_others_are(launched: Callable[[str], Run]) -> None:
    """Of a barrier that rank 0 alone calls the line shown is that barrier, although the other rank's stack is known, and so it is after Ctrl-C."""
    job = launched("main_waits.py")
    job.wait()
    text = (_PROGRAMS / "main_waits.py").read_text(encoding="utf-8").split("\n")
    place = "main_waits.py:%d" % (1 + text.index("            dist.barrier()"))
    before = told(job.folder)
    assert before is not None
    assert (before.rule, before.ranks, before.line.rpartition("/")[2]) == ("collective-never-called-by-others", (0,), place)
    WAYS["Ctrl-C"](job)
    wind_down(job)
    assert told(job.folder) == before
