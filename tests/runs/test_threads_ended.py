"""A thread of a rank that ends with an exception is in the log, and a run that ends with 0 after it is not clear."""

import re
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple

import pytest

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.load_run import load

PROGRAM = Path(__file__).parent / "programs" / "threads.py"


class Launch(NamedTuple):
    """One launch of two ranks: what it printed, the lines about threads, and what the report says."""

    out: str
    err: str
    events: List[Dict[str, Any]]
    diagnosis: Diagnosis


@pytest.fixture
def launch(tmp_path, torchrun, armed, read_events) -> Callable[[str], Launch]:
    """Return a function that launches the program, which must end with 0."""

    def run(how: str) -> Launch:
        done = torchrun(PROGRAM, args=[how], env=armed(tmp_path / "runs"), timeout=240)
        assert done.returncode == 0, done.stderr
        (folder,) = [path for path in (tmp_path / "runs").iterdir() if path.is_dir() and not path.is_symlink()]
        events = [event for event in read_events(folder) if event["event"] == "thread.failed"]
        return Launch(done.stdout, done.stderr, events, judge(load([str(folder)])))

    return run


def test_a_thread_that_raises_is_named_with_rank_and_line(launch) -> None:
    """An exception in a thread is printed once without our frames, is a line of the log, and the finding names rank, thread and line."""
    done = launch("raise")
    line = next(number for number, text in enumerate(PROGRAM.read_text().splitlines(), 1) if "raise ValueError" in text)
    (event,) = done.events
    assert (event["rank"], event["thread"], event["failure"]["type"], event.get("after_main")) == (1, "prefetch", "ValueError", None)
    (finding,) = done.diagnosis.findings
    assert (finding.slug, finding.severity, finding.ranks, done.diagnosis.verdict) == ("thread-ended", "warning", [1], "found")
    words = "A thread of rank 1 (prefetch) ended with ValueError: no such column at %s:%d; the job went on." % (PROGRAM, line)
    assert finding.verdict == words
    assert done.diagnosis.exit_code() == 0
    assert done.err.count("ValueError: no such column") == 1
    printed = done.err.partition("Exception in thread prefetch")[2].partition("ValueError")[0]
    assert set(re.findall(r'File "(.+)", line', printed)) == {threading.__file__, str(PROGRAM)}


def test_the_jobs_own_hook_runs(launch) -> None:
    """A hook that the job sets before it joins a group is called as ever; torch was imported before, so this hook hides the thread from us."""
    done = launch("own hook")
    assert done.out.count("the job's hook got ValueError of prefetch") == 1
    assert "Exception in thread" not in done.err


def test_a_librarys_thread_is_told_with_less_confidence(launch) -> None:
    """A thread without a line of the job is told as a library's, and blamed for nothing."""
    done = launch("a library")
    (finding,) = done.diagnosis.findings
    assert (finding.slug, finding.confidence, finding.explains) == ("thread-ended", "low", [])
    assert "in code of a library alone; the job went on." in finding.verdict


def test_many_threads_write_few_lines(launch) -> None:
    """Of forty threads that end so ten are written, and the finding has the number."""
    done = launch("many")
    assert [event["count"] for event in done.events] == [*range(1, 9), 16, 32]
    (finding,) = done.diagnosis.findings
    assert finding.verdict.endswith("; the job went on; at least 32 threads of one process ended so.")


def test_a_thread_that_outlives_the_main_thread(launch) -> None:
    """A thread that raises after the main thread has ended is told as such."""
    done = launch("late")
    assert [event["after_main"] for event in done.events] == [True]
    assert ", after the main thread had ended; the job went on." in done.diagnosis.findings[0].verdict


def test_a_thread_that_exits_is_none(launch) -> None:
    """sys.exit in a thread ends that thread alone, as Python means it: the run is clear."""
    done = launch("exit")
    assert (done.events, done.diagnosis.verdict) == ([], "clear")
