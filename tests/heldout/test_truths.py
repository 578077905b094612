"""The held-out jobs and their truths: what is written of a job stands in it, and the score counts by it."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

HERE = Path(__file__).resolve().parent
SETS = (HERE, HERE / "clients")


def _number(job: Path) -> int:
    return int(job.stem.split("_")[0])


def _jobs(folder: Path) -> List[Path]:
    return sorted((folder / "jobs").glob("*.py"), key=_number)


def _truths(folder: Path) -> List[Dict[str, Any]]:
    return [json.loads(line) for line in (folder / "truths.jsonl").read_text(encoding="utf-8").splitlines()]


def _cases(folder: Path) -> List[Any]:
    return [pytest.param(folder, truth, id=truth["job"]) for truth in _truths(folder)]


JOBS = [*_jobs(HERE), *_jobs(HERE / "clients")]
TRUTHS = _truths(HERE)
CASES = [*_cases(HERE), *_cases(HERE / "clients")]


def _statements(truth: Dict[str, Any]) -> List[Any]:
    return [*truth["place"], *truth["decided"], *truth["also"]]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.stem)
def test_a_job_compiles(job: Path) -> None:
    """Each job is a program that Python compiles."""
    compile(job.read_text(encoding="utf-8"), str(job), "exec")


@pytest.mark.parametrize("folder", SETS, ids=lambda folder: folder.name)
def test_each_job_has_one_truth(folder: Path) -> None:
    """Each job has one truth, and no number is that of two jobs."""
    jobs = _jobs(folder)
    assert [truth["job"] for truth in _truths(folder)] == [job.stem for job in jobs]
    assert len({_number(job) for job in jobs}) == len(jobs) > 20


@pytest.mark.parametrize(("folder", "truth"), CASES)
def test_a_truth_stands_in_its_job(folder: Path, truth: Dict[str, Any]) -> None:
    """Each line that a truth names holds the statement that the truth quotes."""
    lines = (folder / "jobs" / (truth["job"] + ".py")).read_text(encoding="utf-8").splitlines()
    assert [[number, lines[number - 1].strip()] for number, _ in _statements(truth)] == _statements(truth)


@pytest.mark.parametrize(("folder", "truth"), CASES)
def test_a_truth_says_who_and_where(folder: Path, truth: Dict[str, Any]) -> None:
    """A job whose ranks part has a guilty rank, a place and a deciding statement; a healthy one has none of them."""
    assert truth["ends"] in ("hangs", "fails", "mixed", "healthy")
    parts = truth["ends"] != "healthy"
    assert [bool(truth[name]) for name in ("guilty", "place", "decided")] == [parts, parts, parts]
    assert all(rank < truth["ranks"] for ranks in truth["guilty"] for rank in ranks)


def _finding(ranks: List[int], verdict: str) -> Dict[str, Any]:
    return {"id": "DDP000", "slug": "parted", "ranks": ranks, "verdict": verdict, "evidence": []}


def _keep(folder: Path, job: str, verdict: str, findings: List[Dict[str, Any]]) -> None:
    kept = folder / job
    kept.mkdir(parents=True)
    (kept / "exit").write_text("1\n", encoding="utf-8")
    report = {"verdict": verdict, "findings": findings, "undecided": []}
    (kept / "report.json").write_text(json.dumps(report), encoding="utf-8")
    ranks = [{"rank": 0, "stands_out": ""}, {"rank": 1, "stands_out": "is alone"}]
    (kept / "watch.json").write_text(json.dumps({"ranks": ranks}), encoding="utf-8")


def _rows(judged: Any) -> Dict[str, List[str]]:
    return {line.split("\t")[0]: line.split("\t")[1:] for line in judged.stdout.splitlines() if line}


def test_the_score_of_kept_reports(repo: Path, tmp_path: Path, run_python: Callable[..., Any]) -> None:
    """Ranks, lines and the order of the lines are counted by the truth, and a clear verdict and an alarm are called false."""
    job = "01_loss_not_finite"
    truth = next(truth for truth in TRUTHS if truth["job"] == job)
    deciding = truth["decided"][0][0]
    victim = truth["also"][0][0]
    first = "rank 1 returned at %s.py:%d; rank 0 waits at %s.py:%d" % (job, deciding, job, victim)
    _keep(tmp_path, job, "found", [_finding([1], first)])
    last = "ranks wait at 05_early_stopping.py:1, rank 0 left at other.py:%d" % deciding
    _keep(tmp_path, "05_early_stopping", "found", [_finding([0], last)])
    _keep(tmp_path, "27_swapped_metrics", "clear", [])
    _keep(tmp_path, "33_broadcast_arms", "found", [_finding([0], "rank 0 broadcasts")])
    rows = _rows(run_python([repo / "scripts" / "score_partings", "--judge", tmp_path]))
    assert rows[job][:8] == ["fails", "1", "found", "yes", "yes", "yes", "yes", "yes"]
    assert rows["05_early_stopping"][:7] == ["hangs", "1", "found", "no", "no", "no", "no"]
    assert rows["27_swapped_metrics"][2] == "clear (false)"
    assert rows["33_broadcast_arms"][2] == "found (false)"
    assert rows["04_barrier_when_best"] == ["not run"]
    sums = {name: rows[name] for name in ("ranks", "line", "falsely clear", "false alarms")}
    assert sums == {"ranks": ["1 of 3"], "line": ["1 of 3"], "falsely clear": ["1 of 3"], "false alarms": ["1 of 1"]}


def test_nothing_to_score(repo: Path, tmp_path: Path, run_python: Callable[..., Any]) -> None:
    """A folder without a run, and a job that there is not, give exit code 2."""
    script = repo / "scripts" / "score_partings"
    assert run_python([script, "--judge", tmp_path, "01"]).returncode == 2
    assert run_python([script, "--judge", tmp_path, "no such job"]).returncode == 2
