"""Real jobs in which one rank is slower: it is named from the ledgers that they leave, and by watch while they run."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from schedule import seed

pytestmark = pytest.mark.slow
PROGRAM = Path(__file__).parent / "programs" / "slow_rank.py"
STEPS = 60


def _report(run_python: Callable[..., Any], root: Path) -> Dict[str, Any]:
    done = run_python(["-m", "ddp_probe", "report", "--json", str(root)], timeout=120)
    found: Dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("nproc", "part", "way"), [(2, "forward", "ddp"), (4, "dataloader", "ddp"), (3, "elsewhere", "ddp"), (4, "elsewhere", "plain")]
)
def test_the_slow_rank_of_a_job_is_named_from_its_ledgers(
    nproc: int, part: str, way: str, torchrun: Callable[..., Any], armed: Callable[..., Any], run_python: Callable[..., Any], tmp_path: Path
) -> None:
    """A drawn rank sleeps 30 ms longer in one part of each of sixty steps: a warning names it and the part, and the others wait meanwhile."""
    slow = random.Random(seed() + nproc).randrange(nproc)
    done = torchrun(PROGRAM, nproc, [str(slow), part, way, str(STEPS)], env=armed(tmp_path / "runs"), timeout=240)
    assert done.returncode == 0, done.stderr
    found = _report(run_python, tmp_path / "runs")
    late = found["late"]
    assert late is not None, found["waits"]
    assert (late["ranks"], late["part"]) == ([slow], part)
    assert late["last_in"] > 0.75 * late["steps"]
    assert late["more"] > 0.02
    assert late["waited"] > 0.01
    (finding,) = [one for one in found["findings"] if one["slug"] == "one-rank-late"]
    assert (finding["severity"], finding["ranks"]) == ("warning", [slow])


def test_nobody_is_named_in_a_job_whose_ranks_are_alike(
    torchrun: Callable[..., Any], armed: Callable[..., Any], run_python: Callable[..., Any], tmp_path: Path
) -> None:
    """The same job without a slow rank names none."""
    done = torchrun(PROGRAM, 3, ["-1", "forward", "ddp", str(STEPS)], env=armed(tmp_path / "runs"), timeout=240)
    assert done.returncode == 0, done.stderr
    found = _report(run_python, tmp_path / "runs")
    assert found["late"] is None
    assert [one["slug"] for one in found["findings"]] == []


def test_watch_names_the_slow_rank_while_the_job_runs(
    armed: Callable[..., Any], run_python: Callable[..., Any], free_port: Callable[[], int], tmp_path: Path
) -> None:
    """Before the job has ended, the row of the slow rank stands out with the part, and the others are said to wait."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port=%d" % free_port(), str(PROGRAM)]
    with (tmp_path / "out").open("wb") as out:
        job = subprocess.Popen([*command, "1", "forward", "ddp", "100000"], env=armed(tmp_path / "runs"), stdout=out, stderr=out, cwd=tmp_path)
    try:
        ranks: List[Dict[str, Any]] = []
        until = time.monotonic() + 240
        while time.monotonic() < until and job.poll() is None and not any("is late" in (one["stands_out"] or "") for one in ranks):
            time.sleep(0.5)
            done = run_python(["-m", "ddp_probe", "watch", "--json", str(tmp_path / "runs")], timeout=60)
            ranks = json.loads(done.stdout)["ranks"] if done.returncode == 0 else []
        assert [one["rank"] for one in ranks if one["stands_out"]] == [1], (ranks, (tmp_path / "out").read_text())
        assert "the forward pass" in ranks[1]["stands_out"]
        assert ranks[0]["waited"] > ranks[1]["waited"]
        assert ranks[0]["steps_per_second"] > 0, ranks
        assert job.poll() is None
    finally:
        job.terminate()
        job.wait(timeout=60)
