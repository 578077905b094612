"""Every program of the collection fails without the probe as its row of the registry says, ends by itself, and leaves nothing running."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple

import pytest
from accelerator.fixtures import gcu_env  # noqa: F401  # a fixture is found by its name
from registry import FOLDER, JOBS, Job, label, shell, stack


class Outcome(NamedTuple):
    """How a job ended."""

    status: int
    output: str
    seconds: float
    left: List[int]


def _processes_in(folder: Path) -> List[int]:
    """Find by its folder whatever a job started: the ranks of newer launchers have sessions of their own."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(str(entry / "cwd")).startswith(str(folder)):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _end(pids: List[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _outcome(job: Job, port: int, env: Dict[str, str], folder: Path) -> Outcome:
    started = time.monotonic()
    with open(str(folder) + ".log", "w+b") as log:
        process = subprocess.Popen(["bash", "-c", shell(job, port)], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            status = process.wait(timeout=job.seconds)
            seconds = time.monotonic() - started
            left = _processes_in(folder)
        finally:
            _end(_processes_in(folder))
            process.wait()
        log.seek(0)
        return Outcome(status, log.read().decode("utf-8", "replace"), seconds, left)


def _cards(request: pytest.FixtureRequest) -> Dict[str, str]:
    """The environment of the simulated cards; empty where they cannot be had, as the tests that need them then say."""
    try:
        return dict(request.getfixturevalue("gcu_env"))
    except pytest.skip.Exception:
        return {}


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest,
    clean_env: Callable[..., Dict[str, str]],
    free_port: Callable[[], int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Dict[str, "Future[Outcome]"]]:
    """The jobs of the tests that are selected, two at a time: most of a job's time is waiting."""
    selected = [item.callspec.params["job"] for item in request.session.items if getattr(item, "originalname", "") == "test_job_fails_as_it_says"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    plain = clean_env(PATH=path, PYTHONPATH=None, DDP_PROBE_STRICT=None)
    chosen = [job for job in selected if stack() in job.stacks]
    cards = _cards(request) if any(job.needs for job in chosen) else {}
    pool = ThreadPoolExecutor(max_workers=2)
    running = {
        label(job): pool.submit(_outcome, job, free_port(), {**plain, **cards} if job.needs else plain, tmp_path_factory.mktemp(label(job)))
        for job in chosen
        if cards or not job.needs
    }
    yield running
    for future in running.values():
        future.cancel()
    pool.shutdown()


@pytest.mark.parametrize("job", JOBS, ids=label)
def test_job_fails_as_it_says(job: Job, outcomes: Dict[str, "Future[Outcome]"], request: pytest.FixtureRequest) -> None:
    """A job ends by itself within its time limit, with the status and the texts that its row names, and leaves no process."""
    if stack() not in job.stacks:
        pytest.skip(job.reason)
    if job.needs:
        request.getfixturevalue("gcu_env")
    outcome = outcomes[label(job)].result()
    print("%s took %.1f s" % (label(job), outcome.seconds))  # pytest -rP shows it.
    missing = [text for text in job.expects if not re.search(text, outcome.output)]
    assert not missing, outcome.output
    assert (outcome.status == 0) == (job.exit == "zero"), outcome.output
    assert outcome.left == []


def test_every_program_is_registered() -> None:
    """Every numbered program has a row in the registry, and every row a program."""
    programs = {path.stem for path in FOLDER.glob("[0-9]*.py")}
    assert programs == {job.name for job in JOBS}


@pytest.mark.parametrize("job", [job for job in JOBS if not job.id], ids=label)
def test_docstring_names_the_cause(job: Job) -> None:
    """A program's docstring gives the root cause that its row gives, and the command that runs it."""
    text = (FOLDER / (job.name + ".py")).read_text(encoding="utf-8").split('"""')[1]
    assert "Root cause to name: %s" % (job.cause or "none") in text
    assert re.search(r"^Command: .*%s\.py$" % job.name, text, re.MULTILINE)
