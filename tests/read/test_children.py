"""Children of mp.spawn: multiprocessing catches their exception, and only the parent reports it."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.load import from_lines, load

pytestmark = pytest.mark.slow

_JOB = """
import os
import sys
import time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, size, port, what):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    if what == "wrap":
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2), device_ids=[rank])
    if what == "data" and rank == 1:
        open("/data/train/000042.png")
    if what == "data":
        time.sleep(100)  # In a collective it might end as soon as rank 1 does, and the parent reports one child.
    if what != "fine":
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(2, *sys.argv[1:]), nprocs=2)
"""


@pytest.fixture
def spawned(
    tmp_path: Path, run_python: Callable[..., Any], armed: Callable[..., Dict[str, str]], free_port: Callable[[], int]
) -> Callable[[str], Diagnosis]:
    """Take what the children do; run them under the probe, and return the diagnosis."""
    script = tmp_path / "job.py"
    script.write_text(_JOB)

    def run(what: str) -> Diagnosis:
        done = run_python([script, str(free_port()), what], env=armed(tmp_path / "runs"), cwd=tmp_path, timeout=120)
        assert (done.returncode == 0) == (what == "fine"), done.stderr
        return judge(load([str(tmp_path / "runs")]))

    return run


def test_a_watched_call_that_failed_is_named(spawned: Callable[[str], Diagnosis]) -> None:
    """A failure of the wrap, after which the child did nothing more, is the cause."""
    diagnosis = spawned("wrap")
    assert [finding.slug for finding in diagnosis.findings] == ["device-ids-on-cpu"]
    assert set(diagnosis.findings[0].ranks) <= {0, 1}


def test_an_exception_that_no_probe_saw_is_told(spawned: Callable[[str], Diagnosis]) -> None:
    """The job's own exception is read from the parent's report, with its line."""
    diagnosis = spawned("data")
    told = [finding.verdict for finding in diagnosis.findings] + [answer.because for answer in diagnosis.undecided]
    assert diagnosis.verdict != "clear"
    assert any("FileNotFoundError" in text and "job.py:" in text for text in told), told


def test_children_that_do_well_are_clear(spawned: Callable[[str], Diagnosis]) -> None:
    """Nothing is found if nothing is wrong."""
    assert spawned("fine").verdict == "clear"


def test_a_program_that_joins_its_children_itself(two_children: str) -> None:
    """If only the parent's uncaught exception names a child, as under Lightning's ddp_spawn, the child's exception is its failure and the cause."""
    found = judge(from_lines(two_children))
    assert [(failure.rank, failure.type) for failure in found.run.failures if not failure.type.endswith("ProcessRaisedException")] == [
        (1, "ValueError")
    ]
    assert (found.verdict, found.findings[0].ranks) == ("found", [1])
    assert "train.py:24" in found.findings[0].verdict + str(found.findings[0].evidence)


@pytest.fixture
def two_children() -> str:
    """The log of a launcher whose children are joined by its caller; both have ended with exit code 1, and it is told of the second."""
    said = '\n\n-- Process 1 terminated with the following error:\nTraceback (most recent call last):\n  File "/train/train.py", line 24, in step\n'
    said += '    raise ValueError("loss is nan")\nValueError: loss is nan\n'
    failure = {"type": "torch.multiprocessing.spawn.ProcessRaisedException", "message": said}
    events: List[Dict[str, Any]] = [
        {"event": "launcher.start", "launcher": "spawn", "pid": 10},
        {"event": "launcher.group", "phase": "begin", "span": 1, "pid": 10},
        {"event": "launcher.group", "phase": "end", "span": 1, "pid": 10, "children": {"0": 11, "1": 12}},
        *({"event": "process.start", "rank": rank, "local_rank": rank, "world_size": 2, "pid": 11 + rank, "role": "promoted"} for rank in (0, 1)),
        *({"event": "process.end", "rank": rank, "local_rank": rank, "world_size": 2, "pid": 11 + rank, "exit_code": 1} for rank in (0, 1)),
        {"event": "launcher.end", "pid": 10, "exit_code": 1, "uncaught": True, "failure": failure},
    ]
    return "\n".join(map(json.dumps, events))
