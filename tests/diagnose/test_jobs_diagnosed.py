"""The recorded logs of the failing jobs: the named cause is the first finding, the ranks are right, and no other rule claims anything."""

import re
from pathlib import Path
from typing import Iterator, Tuple

import pytest
from proofs import NOT_SEEN
from registry import JOBS, Job, label

from ddp_probe.diagnose import judge
from ddp_probe.diagnose.causes import group_of
from ddp_probe.read import load

RECORDED = Path(__file__).resolve().parent.parent / "recorded"


def _recorded() -> Iterator[Tuple[str, Job]]:
    for job in JOBS:
        for stack in job.stacks:
            yield stack, job


_EACH = pytest.mark.parametrize(("stack", "job"), list(_recorded()), ids=lambda value: value if isinstance(value, str) else label(value))


@pytest.mark.sample(120, of="recorded jobs", few=20)
@_EACH
def test_names_the_cause(stack: str, job: Job) -> None:
    """The report over a job's files names its cause and its ranks, and nothing else; what the probe does not see yet is not guessed."""
    folder = RECORDED / stack / label(job)
    if not list(folder.rglob("*.jsonl")):
        pytest.skip("the job leaves no file")
    diagnosis = judge(load([str(folder)]))
    told = [(finding.cause, tuple(finding.ranks)) for finding in diagnosis.findings]
    if job.cause is None:
        assert (told, diagnosis.verdict) == ([], "clear")
    elif label(job) in NOT_SEEN:
        unproven = [answer.slug for answer in diagnosis.undecided] == ["unknown-exit-code"]  # A probe that did not know wrote it, and no launcher.
        assert (told, diagnosis.verdict) == ([], "clear" if job.exit == "zero" and not unproven else "undecided")
        assert job.exit == "zero" or re.search(r"(?i)ranks? [01].*(waited|ended by SIGABRT)", diagnosis.undecided[0].because)
    else:
        assert told == [(job.cause, job.ranks)]


@pytest.mark.sample(120, of="recorded jobs", few=20)
@_EACH
def test_the_plain_log_is_never_clear_and_never_wrong(stack: str, job: Job) -> None:
    """What a job printed, read without the probe's files, names a cause of the right group or is undecided; a healthy one is undecided."""
    diagnosis = judge(load([str(RECORDED / stack / label(job) / "output.txt")]))
    named = {group_of(finding.cause) for finding in diagnosis.findings}
    assert diagnosis.verdict == ("found" if named else "undecided")
    finer = {"own_failure"} if job.cause == "rank_stopped_participating" else set()  # Why it stopped.
    assert named <= {group_of(job.cause or ""), *finer} - {""}
    assert all(finding.confidence == "low" for finding in diagnosis.findings)
