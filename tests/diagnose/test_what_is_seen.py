"""A cause is said only as far as the run shows it: who has a folder, who answered, what the job asked for; on written events."""

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from ddp_probe.judging.change import LaunchCommand
from ddp_probe.judging.judge import judge
from ddp_probe.judging.rule import Finding
from ddp_probe.reading.load_run import from_lines, load

_SITE = {"file": "/train/train.py", "line": 31, "function": "main"}


def _line(name: str, rank: int, **fields: Any) -> str:
    return json.dumps({"event": name, "rank": rank, "pid": fields.pop("pid", 100 + rank), **fields})


def _only(lines: List[str]) -> Finding:
    (finding,) = judge(from_lines("\n".join(lines))).findings
    return finding


def _save(rank: int, path: str, **failed: Any) -> List[str]:
    end = _line("checkpoint.save", rank, phase="error" if failed else "end", span=1, **failed)
    return [_line("checkpoint.save", rank, phase="begin", span=1, path=path, site=_SITE), end]


def test_a_folder_that_nobody_makes_is_not_another_ranks() -> None:
    """If no rank has saved into the folder, nobody is said to make it, and the change makes it; if one has, it is named."""
    failure = {"type": "RuntimeError", "message": "Parent directory out/run1 does not exist."}
    starts = [_line("process.start", rank, world_size=2) for rank in (0, 1)]
    lost = [*_save(0, "out/run1/model.pth", failure=failure), _line("process.end", 0, exit_code=1, uncaught=True, failure=failure)]
    nobody = _only([*starts, *lost, _line("process.end", 1, exit_code=0)])
    assert (nobody.slug, nobody.ranks) == ("folder-on-one-rank", [0])
    assert nobody.verdict == "The folder out/run1 does not exist for this rank, and no rank is recorded creating it or saving into it."
    assert "os.makedirs(os.path.dirname(path) or '.', exist_ok=True)" in nobody.remedy
    other = _only([*starts, *lost, *_save(1, "out/run1/optimizer.pth"), _line("process.end", 1, exit_code=0)])
    assert "rank 1 has saved into it" in other.verdict
    assert "barrier()" in other.remedy


_REFUSED = "Gloo connectFullMesh failed with [pair.cc:152] timed out connecting: SO_ERROR: Connection refused, remote=[127.0.0.1]:4516$0"


_WHEN = "2026-11-20T17:00:%02dZ"


def _generation(folder: Path, pid: int, second: int, **failed: Any) -> None:
    """Write the files of two ranks that join their group, or fail to."""
    start = {"TORCHELASTIC_RESTART_COUNT": str(second // 10)}
    for rank in (0, 1):
        own = {"pid": pid + rank, "world_size": 2, "host": "node1", "span": 1}
        lines = [_line("process.start", rank, **own, role="rank", launcher="torchrun", environment=start, ts=_WHEN % second)]
        lines += [_line("dist.init_process_group", rank, **own, phase="begin", backend="gloo", site=_SITE, ts=_WHEN % (second + 1))]
        lines += [_line("dist.init_process_group", rank, **own, phase="error" if failed else "end", **failed, ts=_WHEN % (second + 2))]
        lines += [_line("process.end", rank, **own, exit_code=1, uncaught=True, **failed, ts=_WHEN % (second + 3))] if failed else []
        file = folder / ("rank%05d.node1.%d.jsonl" % (rank, pid + rank))
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_a_store_that_answers_is_not_an_unreachable_master(tmp_path: Path) -> None:
    """A restart that reads the store of the start before is said to, after what ended that start; nobody is asked to look for a port."""
    refused = {"failure": {"type": "RuntimeError", "message": _REFUSED}}
    once, again = tmp_path / "once", tmp_path / "again"
    for folder in (once, again):
        folder.mkdir()
        _generation(folder, 200, 10, **refused)
    _generation(again, 100, 0)
    children = [(0, 100, -15, "SIGTERM", 6), (1, 101, -9, "SIGKILL", 5), (0, 200, 1, "", 14), (1, 201, 1, "", 14)]
    told = [{"event": "launcher.start", "launcher": "torchrun", "host": "node1", "pid": 50, "ts": _WHEN % 0}]
    for rank, pid, code, signal, second in children:
        child = {"child_rank": rank, "child_local_rank": rank, "child_pid": pid, "exit_code": code, "signal": signal}
        told.append({"event": "launcher.child", "host": "node1", "pid": 50, "ts": _WHEN % second, **child})
    (again / "launcher.node1.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told), encoding="utf-8")
    (finding,) = judge(load([str(again)])).findings
    assert finding.slug == "master-unreachable"
    assert finding.verdict.startswith("Rank 1 of the previous start was ended by SIGKILL. Ranks 0-1 reached the store and got [127.0.0.1]:4516")
    assert "nc -zv" not in finding.remedy
    assert "PrefixStore(os.environ['TORCHELASTIC_RESTART_COUNT']" in finding.remedy
    (alone,) = judge(load([str(once)])).findings
    assert "previous start" not in alone.verdict
    assert "GLOO_SOCKET_IFNAME" in alone.remedy


_GCU: Dict[str, Any] = {"name": "gcu", "device_type": "gcu", "module": "torch_gcu"}


@pytest.mark.parametrize(
    ("asked", "at_start", "at_end", "named"),
    [
        ("eccl", [], [], "eccl"),
        ("eccl", [], [_GCU], "eccl"),
        ("eccl", [{**_GCU, "count": 8, "initialised": True}], [], "eccl"),
        ("custom", [{**_GCU, "count": 8, "initialised": True}], [], "custom"),
        ("gloo", [{**_GCU, "count": 8, "initialised": True}], [], "eccl"),
        ("nccl", [], [], "gloo"),
        ("gloo", [], [], "gloo"),
    ],
)
def test_the_jobs_own_backend_is_the_one_to_name(asked: str, at_start: List[Any], at_end: List[Any], named: str) -> None:
    """The group that takes the place of init_dist has the job's own backend, unless that needs CUDA or cannot carry the card's tensors."""
    failure = {"type": "AttributeError", "message": "module 'torch._C' has no attribute '_cuda_setDevice'"}
    runner = [{"file": "/lib/mmengine/runner/runner.py", "line": 700, "function": "setup_env"}]
    begin = {"launcher": "pytorch", "backend": asked, "branch": "cuda", "site": _SITE, "through": runner}
    finding = _only(
        [
            _line("process.start", 0, world_size=1, accelerators=at_start),
            _line("mmengine.init_dist", 0, phase="begin", span=1, **begin),
            _line("mmengine.init_dist", 0, phase="error", span=1, failure=failure),
            _line("process.end", 0, exit_code=1, uncaught=True, failure=failure, accelerators=at_end),
        ]
    )
    assert finding.id == "DDP201"
    assert "init_process_group('%s')" % named in finding.remedy
    assert ("set_device" in finding.remedy) == bool(at_start or at_end)


@pytest.mark.parametrize("cpu", [True, False])
def test_accelerate_with_cpu_is_not_told_to_take_cpu(cpu: bool) -> None:
    """accelerate launch --cpu starts one process, whatever it is asked for; what starts several on the CPU is torchrun."""
    parent = ["/env/bin/python", "/env/bin/accelerate", "launch", *["--cpu"] * cpu, "--num_processes", "2", "train.py", "--name", "a b"]
    argv = ["python", "-u", "train.py", "--name", "a b"]
    finding = _only([_line("process.start", 0, role="solo", launcher="none", argv=argv, parent=parent), _line("process.end", 0, exit_code=0)])
    assert finding.edits == [LaunchCommand("ACCELERATE_USE_CPU=true torchrun --nproc_per_node=2 train.py --name 'a b'")]
    assert "--cpu" not in finding.remedy


_RAY = """2026-11-25 01:46:16,708\tINFO worker.py:2038 -- Started a local Ray instance.
Traceback (most recent call last):
  File "/train/job.py", line 17, in <module>
    print(ray.get([w.train.remote(r, int(sys.argv[2]), sys.argv[1]) for r, w in enumerate(workers)]))
  File "/env/lib/python3.11/site-packages/ray/_private/worker.py", line 3009, in get
    values, debugger_breakpoint = worker.get_objects(
  File "/env/lib/python3.11/site-packages/ray/_private/worker.py", line 1053, in get_objects
    raise value.as_instanceof_cause()
ray.exceptions.RayTaskError(ValueError): \x1b[36mray::Worker.train()\x1b[39m (pid=28181, ip=192.0.2.2, actor_id=069a02f8020b23ca006c2ba701000000, \
repr=<job.Worker object at 0x7fee8a5b9f10>)
  File "/train/job.py", line 11, in train
    raise ValueError("loss is nan")
ValueError: loss is nan
"""


def test_what_ray_prints_of_a_worker_is_the_workers_exception() -> None:
    """In what the driver of Ray 2.60 prints, the exception is the worker's own, at its line; RayTaskError carries it."""
    finding = _only(_RAY.splitlines())
    assert (finding.id, finding.ranks) == ("DDP623", [])
    assert "ValueError: loss is nan at /train/job.py:11" in finding.verdict


def test_a_worker_of_ray_that_raised_has_left() -> None:
    """Of a worker whose exception Ray has kept, it is said that it left and who prints the exception; nothing is said to be killed."""
    starts = [_line("process.start", rank, world_size=2, role="promoted", launcher="multiprocessing") for rank in (0, 1)]
    ledgers = ["ledger 0-1 all_reduce 4 float32 at /train/job.py:12 x2", "ledger 0 all_reduce 4 float32 at /train/job.py:12 open"]
    finding = _only([*starts, _line("process.end", 1, exit_code=0), *ledgers])
    assert (finding.id, finding.ranks) == ("DDP631", [1])
    assert "Ray" in finding.remedy
    assert "kill" not in finding.remedy + finding.verdict
