"""Which run is read without a name, if `attach` has looked at a job that has a run of its own."""

import os
import shutil
from pathlib import Path
from typing import Any, Callable

import pytest

from ddp_probe.reading import find

_LOOK = "attach-20261122-145900-7"
Run = Callable[..., Any]


@pytest.fixture
def runs(tmp_path: Path, repo: Path) -> Path:
    """A folder with an older run of another job, a run, and a later look at the same processes."""
    names = {"other": "08_uneven_batches", "armed": "00_healthy_ddp", _LOOK: "00_healthy_ddp"}
    for seconds, (name, recorded) in enumerate(names.items()):
        shutil.copytree(repo / "tests/recorded/new" / recorded, tmp_path / name)
        for file in (tmp_path / name).iterdir():
            os.utime(file, (1000 + seconds, 1000 + seconds))
    return tmp_path


def test_a_run_comes_before_what_attach_saw_of_it(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look is newer, and the run of the same processes is the newest run."""
    monkeypatch.setenv("DDP_PROBE_DIR", str(runs))
    assert Path(find.newest()).name == "armed"
    assert [Path(look).name for look in find.looks_at(str(runs / "armed"))] == [_LOOK]
    assert find.looks_at(str(runs / "other")) == []


def test_a_look_at_another_job_stays_the_newest_run(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a run of the same processes, attach's is read."""
    monkeypatch.setenv("DDP_PROBE_DIR", str(runs))
    shutil.rmtree(runs / "armed")
    assert Path(find.newest()).name == _LOOK


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "attach has seen this job from outside, too"), ("zh", "attach 也从外部看过这个任务")],
)
def test_a_report_names_it(runs: Path, clean_env: Run, run_python: Run, language: str, words: str) -> None:
    """It has the command that reads the look; a run that is named has no such note."""
    env = clean_env(DDP_PROBE_DIR=str(runs), DDP_PROBE_LANG=language, COLUMNS="200")
    page = run_python(["-m", "ddp_probe", "report"], env=env).stdout
    assert words in page
    assert "python -m ddp_probe report attach-20261122-145900-7" in page
    assert words not in run_python(["-m", "ddp_probe", "report", str(runs / "armed")], env=env).stdout
