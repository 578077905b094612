"""Jobs in which one rank skips, repeats or swaps one call: the rank that leaves the sequence of calls is named, whatever most ranks wait for."""

import os
import random
import signal
import subprocess
from pathlib import Path
from typing import Any, List, Tuple

import pytest
from parted_jobs import Call, Job, draw, log, program_text, simulated
from processes import run_in
from schedule import seed

from ddp_probe.judging.judge import judge
from ddp_probe.reading import ledger_text
from ddp_probe.reading.load_run import from_lines, load
from ddp_probe.reading.rank_ledger import made
from ddp_probe.showing.watch.watch_look import LiveView

DRAWS = 200


def _job(number: int) -> Job:
    drawn = "%d %d" % (seed(), number)
    print("seed", drawn)
    return draw(random.Random(drawn))


def _cannot_be_told(job: Job) -> bool:
    """Tell whether nothing shows who is wrong: among four ranks that send, one or two play a part of their own, and have no two steps behind them."""
    return job.ranks == 4 and job.step < 2 and job.shape.startswith(("pipeline", "ring"))


def test_the_guilty_rank_is_named_in_every_draw() -> None:
    """In pairs, rings, pipelines and grids the guilty rank alone is named; of four that send, in their first two steps, at worst with its peer."""
    both = []
    for number in range(DRAWS):
        job = _job(number)
        ranks = [finding.ranks for finding in judge(from_lines(log(simulated(job.program)))).findings]
        if _cannot_be_told(job) and len(ranks[0]) == 2:
            assert job.guilty in ranks[0], (job[:5], ranks)
            both.append(job[:5])
            continue
        assert ranks == [[job.guilty]], (job[:5], ranks)
    print("%d of %d cannot be told: %s" % (len(both), DRAWS, both))
    assert len(both) < DRAWS / 10


def test_a_call_of_a_pair_that_one_rank_skips() -> None:
    """Three of four ranks wait in a later call of all, for the rank whose partner is the guilty one: what the other pair did tells."""
    job = _pairs(ranks=4, steps=40, guilty=3, skipped=60)
    finding = judge(from_lines(log(simulated(job)))).findings[0]
    assert finding.ranks == [3]
    assert "At this point ranks 0-2 call all_reduce at /job/train.py:20, and rank 3 calls all_reduce at /job/train.py:26." in finding.verdict


def test_watch_marks_whom_the_report_names(tmp_path: Path) -> None:
    """In each draw the ranks that stand out in watch are those of the report, skips included."""
    for number in range(60):
        job = _job(number)
        text = log(simulated(job.program))
        folder = tmp_path / str(number)
        _write(folder, text)
        assert sorted(LiveView([str(folder)]).look().outliers) == judge(from_lines(text)).findings[0].ranks, job[:5]


def _write(folder: Path, text: str) -> None:
    """Write the ledgers and the logs of ranks of another host."""
    folder.mkdir()
    lines = text.splitlines()
    for rank, data in ledger_text.written([line for line in lines if line.startswith("ledger")]).items():
        (folder / ("rank%05d.node1.7.ledger" % rank)).write_bytes(data)
        own = [line for line in lines if '"rank":%d,' % rank in line]
        (folder / ("rank%05d.node1.7.jsonl" % rank)).write_text("".join(line + "\n" for line in own), encoding="utf-8")


def _pairs(ranks: int, steps: int, guilty: int, skipped: int) -> List[List[Call]]:
    step = [[Call("all_reduce", 20, (rank & ~1, rank | 1)), Call("all_reduce", 26, tuple(range(ranks)))] for rank in range(ranks)]
    program = [calls * steps for calls in step]
    del program[guilty][skipped]
    return program


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize("number", range(12))
def test_real_ranks_do_what_the_simulation_says(number: int, armed: Any, python: str, free_port: Any, tmp_path: Path) -> None:
    """Over gloo each rank makes exactly these calls and then waits in the last of them, or ends; and the guilty rank is named."""
    job = draw(random.Random("%d real %d" % (seed(), number)), with_ended=False)
    print("seed %d real %d" % (seed(), number), job[:5])
    wanted = simulated(job.program)
    script = tmp_path / "train.py"
    script.write_text(program_text(job.program), encoding="utf-8")
    told, ranks = _launched([python, str(script), str(free_port())], armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="3"), tmp_path, wanted)
    assert told == [[(call.op, call.line) for call in did.calls] for did in wanted]
    assert job.guilty in ranks
    assert len(ranks) == 1 or (_cannot_be_told(job) and len(ranks) == 2)


def _launched(command: List[str], env: Any, folder: Path, wanted: List[Any]) -> Tuple[List[List[Tuple[str, int]]], List[int]]:
    """Start the job, wait until each rank that hangs has said so, and return what the ranks called and who is named."""
    with open(folder / "printed", "wb") as printed, subprocess.Popen(
        command, env=env, cwd=folder, stdout=printed, stderr=printed, start_new_session=True
    ) as process:
        try:
            _until_told(folder / "runs", sum(did.waits for did in wanted), process)
            run = load([run_in(folder / "runs")])
            calls = [made(run.ranks[rank].whole_ledger().records) for rank in sorted(run.ranks)]
            ranks = judge(run).findings[0].ranks
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # The ranks too: each would wait for the others for half an hour.
    return [[(call.op, call.line) for call in one if call.line < 30] for one in calls], ranks


def _until_told(runs: Path, waiting: int, process: Any) -> None:
    while process.poll() is None:
        logs = [path.read_text(encoding="utf-8") for path in runs.glob("[0-9]*/rank*.jsonl")]
        if sum('"hang.suspected"' in text for text in logs) >= waiting:
            return
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("The job has ended.")
