"""A run that is judged in two processes has the diagnosis that one process gives."""

import os
from pathlib import Path
from typing import Any, Iterator, List, Tuple

import pytest
from registry import JOBS, Job, label

from ddp_probe.judging import judge as judging
from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import from_lines, load
from ddp_probe.reading.model import Failed, LogLine
from ddp_probe.showing import as_json

RECORDED = Path(__file__).resolve().parent.parent / "recorded"
_LOG = """
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"ValueError","message":"no"}}
"""


def _recorded() -> Iterator[Tuple[str, Job]]:
    for job in JOBS:
        for stack in job.stacks:
            yield stack, job


@pytest.fixture(autouse=True)
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge every run in two processes."""
    monkeypatch.setattr(judging, "_LEAST", 0)


@pytest.mark.sample(16, few=4)
@pytest.mark.parametrize(("stack", "job"), list(_recorded()), ids=lambda value: value if isinstance(value, str) else label(value))
def test_two_processes_give_the_diagnosis_of_one(stack: str, job: Job) -> None:
    """The findings, their order, what they explain and the open questions are the same."""
    folder = RECORDED / stack / label(job)
    if not list(folder.rglob("*.jsonl")):
        pytest.skip("the job leaves no file")
    run = load([str(folder)])
    alone, together = judge(run), judge(run, cores=2)
    assert as_json.text(together) == as_json.text(alone)
    assert [list(map(id, each.explains)) for each in together.findings] == [list(map(id, each.explains)) for each in alone.findings]


def test_an_answer_that_cannot_be_sent_is_asked_for_again() -> None:
    """A rule that makes a failure of its own, and one that ends the child, are asked in the parent."""
    run, parent = from_lines(_LOG), os.getpid()
    own = Failed(rank=0, when=0.0, at=LogLine("x", 1), type="A", message="b")

    def ask(number: int) -> List[Any]:
        if number == 2 and os.getpid() != parent:
            os.kill(os.getpid(), 9)
        return [own, number] if number == 1 else [run.failures[0], number]

    found = judging.asked_of_all(range(40), run, ask, 2)
    assert found == [part for number in range(40) for part in ask(number)]
    assert sum(part is own for part in found) == 1
    assert sum(part is run.failures[0] for part in found) == 39
