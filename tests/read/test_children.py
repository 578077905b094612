"""Children of mp.spawn: multiprocessing catches their exception, and only the parent reports it."""

from pathlib import Path
from typing import Any, Callable, Dict

import pytest

from ddp_probe.diagnose import Diagnosis, judge
from ddp_probe.read import load

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
