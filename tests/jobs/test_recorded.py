"""The recorded logs of the jobs are complete, neutral and small, and hold what proves each job's cause."""

import re
from pathlib import Path
from typing import Iterator, List, Tuple

import pytest
from facts_of_a_run import lacking, read
from proofs import NOT_SEEN, PROOFS
from registry import JOBS, Job, label

from ddp_probe.reading import whole_ledger

RECORDED = Path(__file__).resolve().parent.parent / "recorded"
_LAUNCHED = re.compile(r"torchrun|torch\.distributed\.launch|launch_on_taken_port")
_PROCESSES = re.compile(r"--nproc_per_node=(\d+)")
# Nothing starts a rank there, or nothing in it calls what is watched, and a program on its own gets a file only then.
_NO_RANK = {"10_launch_on_taken_port", "11_half_on_cpu", "11_newer_torch_needed"}
_PUBLIC = re.compile(r"(pytorch\.org|readthedocs\.io|github\.com|(www\.)?nvidia\.com|python\.org|numpy\.org)$")
_NOT_NEUTRAL = re.compile(r"(?<!\d)/(root|work)(?![\w-])|/home/(?!user\b)\w+|(?<![\w/])/tmp/|/Users/\w")


def _recorded() -> Iterator[Tuple[str, Job]]:
    for job in JOBS:
        for stack in job.stacks:
            yield stack, job


_EACH = pytest.mark.parametrize(("stack", "job"), list(_recorded()), ids=lambda value: value if isinstance(value, str) else label(value))


def _files() -> List[Path]:
    files = [path for path in RECORDED.rglob("*") if path.is_file()]
    assert files, "scripts/record_jobs has not been run"
    return files


@_EACH
def test_has_its_files(stack: str, job: Job) -> None:
    """A recorded job has what it printed, a file of each rank that it starts, and one of its launcher where it has one."""
    folder = RECORDED / stack / label(job)
    assert (folder / "output.txt").read_text(encoding="utf-8").strip() or job.exit == "zero"
    run = read(folder)
    if _LAUNCHED.search(job.command):
        assert len(run.launchers) == 1
        assert run.launchers[0][0]["event"] == "launcher.start"
    else:
        assert run.launchers == []
    assert sorted(run.ranks) == _ranks(job)
    assert all(events[0]["event"] == "process.start" for events in run.ranks.values())


def _ranks(job: Job) -> List[int]:
    if label(job) in _NO_RANK:
        return []
    found = _PROCESSES.search(job.command)
    return list(range(int(found[1]))) if found else [int((re.findall(r"\bRANK=(\d+)", job.command) or ["0"])[0])]


@_EACH
def test_proves_its_cause(stack: str, job: Job) -> None:
    """The log of a job holds the facts that prove its cause, or those that show why it cannot."""
    facts = PROOFS.get(label(job)) or NOT_SEEN[label(job)].because
    assert lacking(facts, job.ranks, read(RECORDED / stack / label(job))) == []


@_EACH
def test_each_rank_has_its_ledger(stack: str, job: Job) -> None:
    """Each rank that came to init_process_group has a ledger, as text, of its own process, complete."""
    for log in sorted((RECORDED / stack / label(job)).rglob("rank*.jsonl")):
        begun = '"event":"dist.init_process_group"' in log.read_text(encoding="utf-8")
        found = whole_ledger.read(log.with_suffix(".ledger.txt")) if begun else None
        assert found is None or (found.problem, found.torn, found.header is not None) == ("", 0, True), log
        assert found is None or found.header is None or "%05d.node1.%d" % (found.header.rank, found.header.pid) in log.name


@_EACH
def test_failed_as_without_the_probe(stack: str, job: Job) -> None:
    """What a job printed under the probe has the texts that it prints without."""
    output = (RECORDED / stack / label(job) / "output.txt").read_text(encoding="utf-8")
    assert [text for text in job.expects if not re.search(text, output)] == []


@pytest.mark.parametrize("stack", ["new", "legacy"])
@pytest.mark.parametrize("healthy", [job for job in JOBS if job.cause is None], ids=label)
def test_no_proof_holds_for_a_healthy_job(stack: str, healthy: Job) -> None:
    """A job in which nothing is wrong lacks some fact of every other job's proof."""
    run = read(RECORDED / stack / label(healthy))
    assert [label(job) for job in JOBS if job.cause and label(job) in PROOFS and not lacking(PROOFS[label(job)], job.ranks, run)] == []


def test_every_job_is_proved_or_said_to_be_unseen() -> None:
    """Each job has a proof or a reason why there is none, and not both."""
    assert set(PROOFS) | set(NOT_SEEN) == {label(job) for job in JOBS}
    assert set(PROOFS) & set(NOT_SEEN) == set()
    assert all(facts for facts in PROOFS.values())
    assert all(unseen.reason and unseen.because for unseen in NOT_SEEN.values())


@_EACH
def test_no_line_is_lost(stack: str, job: Job) -> None:
    """In each process the lines count from 0 without a gap, and none tells of a fault of the probe."""
    folder = RECORDED / stack / label(job)
    for events in [*read(folder).ranks.values(), *read(folder).launchers]:
        assert [event["seq"] for event in events] == list(range(len(events)))
        assert [event for event in events if event["event"] == "probe.fault"] == []


def test_neutral() -> None:
    """No recorded file names a host, a folder or a user of the machine that recorded it, or an address that is not public documentation."""
    for path in _files():
        text = path.read_text(encoding="utf-8")
        assert _NOT_NEUTRAL.search(text) is None, path
        assert all(_PUBLIC.search(host) for host in re.findall(r"https?://([^/:\s\"'>]+)", text)), path
        assert set(re.findall(r'"host":"([^"]*)"|"kind":"host","is":"([^"]*)"', text)) <= {("node1", ""), ("", "node1")}, path
        assert set(re.findall(r"\b\d+\.\d+\.\d+\.\d+\b", text)) <= {"127.0.0.1", "0.0.0.0"}, path


def test_only_jobs_of_the_registry_are_there() -> None:
    """Every recorded folder belongs to a job of the registry."""
    there = {(path.parent.parent.name, path.parent.name) for path in RECORDED.glob("*/*/output.txt")}
    assert there == {(stack, label(job)) for stack, job in _recorded()}


def test_small() -> None:
    """A recording has less than 27 KB in the mean, the one of eight ranks among them."""
    assert sum(path.stat().st_size for path in _files()) < 27_000 * len(list(_recorded()))
