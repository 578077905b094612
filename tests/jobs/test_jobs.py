"""Every program of the collection fails without the probe as its row of the registry says, ends by itself, and leaves nothing running."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple

import pytest
from accelerator.fixtures import gcu_env  # noqa: F401  # a fixture is found by its name
from processes import kill_in, processes_in
from registry import FOLDER, JOBS, Job, label, shell, stack


class Outcome(NamedTuple):
    """How a job ended."""

    status: int
    output: str
    seconds: float
    left: List[int]


def _outcome(job: Job, port: int, env: Dict[str, str], folder: Path) -> Outcome:
    started = time.monotonic()
    with open(str(folder) + ".log", "w+b") as log:
        process = subprocess.Popen(["bash", "-c", shell(job, port)], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            status = process.wait(timeout=job.seconds)
            seconds = time.monotonic() - started
            left = processes_in(folder)
        finally:
            kill_in(folder)
            process.wait()
        log.seek(0)
        output = log.read().decode("utf-8", "replace")
        if status == 77:  # As in Automake: what the job needs is not there.
            pytest.skip(output)
        return Outcome(status, output, seconds, left)


@pytest.fixture
def outcome(
    job: Job,
    request: pytest.FixtureRequest,
    clean_env: Callable[..., Dict[str, str]],
    free_port: Callable[[], int],
    tmp_path: Path,
) -> Outcome:
    """How the job of this test ends without the probe."""
    if stack() not in job.stacks:
        pytest.skip(job.reason)
    cards = request.getfixturevalue("gcu_env") if job.needs else {}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    folder = tmp_path / "job"
    folder.mkdir()
    return _outcome(job, free_port(), {**clean_env(PATH=path, PYTHONPATH=None, DDP_PROBE_STRICT=None), **cards}, folder)


@pytest.mark.sample(4)
@pytest.mark.parametrize("job", JOBS, ids=label)
def test_job_fails_as_it_says(job: Job, outcome: Outcome) -> None:
    """A job ends by itself within its time limit, with the status and the texts that its row names, and leaves no process."""
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
