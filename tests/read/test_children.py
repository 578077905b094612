"""Children of mp.spawn: multiprocessing catches their exception, and only the parent reports it."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.load_run import from_lines, load

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


_POOL = """
import multiprocessing
import sys
import time
import torch
import torch.distributed as dist


def work(rank, address):
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:
        store.get("waits")
        time.sleep(1)
        raise KeyError("img")
    store.set("waits", "1")
    dist.barrier()


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        ranks = [pool.apply_async(work, (rank, "tcp://127.0.0.1:" + sys.argv[1])) for rank in (0, 1)]
        ranks[1].get()
"""


def test_the_exception_that_a_pool_keeps_is_told_by_its_parent(
    tmp_path: Path, run_python: Callable[..., Any], armed: Callable[..., Dict[str, str]], free_port: Callable[[], int]
) -> None:
    """A worker of a pool that raised is named with its exception and its line, which only the parent has."""
    script = tmp_path / "pool.py"
    script.write_text(_POOL)
    done = run_python([script, str(free_port())], env=armed(tmp_path / "runs", DDP_PROBE_REPORT="0"), cwd=tmp_path, timeout=120)
    assert done.returncode == 1
    (finding,) = judge(load([str(tmp_path / "runs")])).findings
    assert (finding.slug, finding.ranks) == ("rank-left-while-others-wait", [1])
    assert "KeyError: 'img' at %s:%d" % (script, _POOL.split("\n").index('        raise KeyError("img")') + 1) in finding.verdict


_PARENT = """
import os
import subprocess
import sys
import torch

for rank in "01":
    subprocess.check_call([sys.executable, "-c", "import torch"], env={**os.environ, "RANK": rank, "WORLD_SIZE": "2"})
raise ValueError("loss is nan")
"""


def test_a_program_that_starts_ranks_in_its_own_way_says_what_it_failed_with(
    tmp_path: Path, run_python: Callable[..., Any], armed: Callable[..., Dict[str, str]]
) -> None:
    """Pools of Ray and joblib start ranks where the probe does not look: their parent writes a file when it fails, and no other program does."""
    (tmp_path / "job.py").write_text(_PARENT)
    (tmp_path / "alone.py").write_text("import torch\nraise ValueError\n")
    for name in ("job", "alone"):
        assert run_python([tmp_path / (name + ".py")], env=armed(tmp_path / name), cwd=tmp_path, timeout=120).returncode == 1
    (log,) = tmp_path.glob("job/2*/launcher.*.jsonl")
    last = json.loads(log.read_text().splitlines()[-1])
    assert (last["event"], last["failure"]["type"], last["failure"]["message"]) == ("launcher.end", "ValueError", "loss is nan")
    assert not (tmp_path / "alone").exists()


_WORKER = '\n  File "/train/train.py", line 24, in step\n    raise ValueError("loss is nan")\nValueError: loss is nan'
_OF_RAY = {"type": "ray.exceptions.RayTaskError(ValueError)", "message": "ray::train() (pid=12, ip=127.0.0.1)" + _WORKER}
_OF_POOL = {"type": "ValueError", "message": "loss is nan", "cause_message": '"""\nTraceback (most recent call last):' + _WORKER + '\n"""'}


@pytest.mark.parametrize("failure", [_OF_RAY, _OF_POOL], ids=["Ray", "Python"])
@pytest.mark.parametrize("known", [True, False])
def test_who_raised_what_a_pool_passes_on(failure: Dict[str, Any], known: bool) -> None:
    """Ray names the process; else it is the only worker that was in no call. If that is not known, nobody is named."""
    events: List[Dict[str, Any]] = [{"event": "launcher.start", "pid": 10}]
    for rank in (0, 1):
        of = {"rank": rank, "world_size": 2, "pid": 11 + rank}
        events += [{"event": "process.start", "role": "promoted", **of}]
        events += [{"event": "dist.init_process_group", "phase": phase, "span": 1, "backend": "gloo", **of} for phase in ("begin", "end")]
    lines = [*map(json.dumps, events), json.dumps({"event": "launcher.end", "pid": 10, "exit_code": 1, "uncaught": True, "failure": failure})]
    if known:
        lines += ["ledger 0-1 all_reduce 4 float32 at /train/train.py:9", "ledger 0 all_reduce 4 float32 at /train/train.py:9 open"]
    run = from_lines("\n".join(lines))
    run.running.clear()
    named = [finding.ranks for finding in judge(run).findings if "train.py:24" in finding.verdict]
    assert named == ([[1]] if known or "pid" in failure["message"] else [])


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
