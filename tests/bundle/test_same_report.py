"""A bundle says what the run itself says."""

import json
from pathlib import Path
from typing import Any, Callable, Iterator, Tuple

import pytest
from registry import JOBS, Job, label

RECORDED = Path(__file__).resolve().parent.parent / "recorded"


def _recorded() -> Iterator[Tuple[str, Job]]:
    for job in JOBS:
        for stack in job.stacks:
            yield stack, job


@pytest.mark.sample(12, few=6)
@pytest.mark.parametrize(("stack", "job"), list(_recorded()), ids=lambda value: value if isinstance(value, str) else label(value))
def test_report_is_the_same(stack: str, job: Job, tmp_path: Path, at_home: Any, bundle: Any, report: Callable[[Path], Tuple[str, str]]) -> None:
    """The report over a bundle of a recorded job, as text and as JSON, is the one over the run, but for the name of the folder."""
    folder = RECORDED / stack / label(job)
    if not list(folder.rglob("*.jsonl")):
        pytest.skip("the job leaves no file")
    (tmp_path / "one").mkdir()  # Both names have as many letters, so that lines break at the same places.
    (tmp_path / "two").mkdir()
    run = at_home(folder, tmp_path / "one" / "bundle.tar.gz")
    made = bundle([run], tmp_path / "two" / "bundle.tar.gz")
    for there, here in zip(report(run), report(made)):
        assert here.replace(str(tmp_path / "two"), str(tmp_path / "one")) == there


def test_several_folders_of_one_launch(tmp_path: Path, bundle: Any, report: Callable[[Path], Tuple[str, str]]) -> None:
    """A run of which each host has written a folder of its own goes in with all of them, and its files keep the folders' names."""
    runs = tmp_path / "one" / "bundle.tar.gz"
    for file in (RECORDED / "new" / "00_healthy_ddp").glob("rank*"):
        place = runs / ("first" if file.name.startswith("rank00000") else "second")
        place.mkdir(parents=True, exist_ok=True)
        (place / file.name).write_bytes(file.read_bytes())
    (tmp_path / "two").mkdir()
    made = bundle([runs / "first"], tmp_path / "two" / "bundle.tar.gz")
    (text, form), (text_of_bundle, form_of_bundle) = report(runs / "first"), report(made)
    assert len(json.loads(form)["inventory"]["folders"]) == 2
    assert text_of_bundle.replace(str(tmp_path / "two"), str(tmp_path / "one")) == text
    assert form_of_bundle.replace(str(tmp_path / "two"), str(tmp_path / "one")) == form


def test_one_of_several_launches(tmp_path: Path, bundle: Any, report: Callable[[Path], Tuple[str, str]]) -> None:
    """RUN:1 bundles the folder with all its launches, and a reader sees the one that was asked for, or another one with BUNDLE:2."""
    run = tmp_path / "run"
    run.mkdir()
    for launch in (1, 2):
        for second, event in ((0, "process.start"), (1, "process.end")):
            line = {
                "event": event,
                "phase": "point",
                "ts": "2026-11-22T10:0%d:0%d.000000Z" % (launch, second),
                "rank": 0,
                "world_size": 1,
                "pid": launch,
            }
            with open(run / ("rank00000.h.%d.jsonl" % launch), "a", encoding="utf-8") as file:
                file.write(json.dumps({**line, "host": "h", "exit_code": 0} if second else {**line, "host": "h"}) + "\n")
    made = bundle([Path("%s:1" % run)], tmp_path / "b.tar.gz")
    notes = [json.loads(report(Path(path))[1])["inventory"]["notes"] for path in ("%s:1" % run, str(made), "%s:2" % made)]
    assert [" ".join(note).count("number 1, ") for note in notes] == [1, 1, 0]
    assert "b.tar.gz:1 reads the first one" in " ".join(notes[1])
