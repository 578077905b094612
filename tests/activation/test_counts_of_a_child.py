"""A fork that becomes a rank, or arms itself, counts and tells of its own calls alone."""

from typing import Any, Dict, List

import pytest

_C10D = "torch.distributed.distributed_c10d."
_KINDS: Dict[str, str] = {
    "torch.serialization.load": "load",
    "torch.serialization.save": "save",
    "torch.nn.modules.module.Module.to": "move",
    "torch.nn.modules.module.Module.cpu": "move",
    "torch.cuda.set_device": "card",
    _C10D + "init_process_group": "group",
    _C10D + "new_group": "group",
    _C10D + "destroy_process_group": "group",
    "torch.nn.parallel.distributed.DistributedDataParallel.__init__": "wrap",
    "mmengine.dist.utils.init_dist": "dist",
    "torch.multiprocessing.spawn.start_processes": "spawn",
}
"""Each target that can be called on a CPU, and how often the program says that it is called."""

_PROGRAM = """
import json, os, sys
from contextlib import suppress
import torch, mmengine.dist
import torch.distributed as dist
import torch.multiprocessing as mp
import ddp_probe

def nothing(rank):
    pass

def group(name, wraps):
    dist.init_process_group("gloo", init_method="file://" + os.path.abspath(name), rank=0, world_size=1)
    dist.new_group([0])
    for _ in range(wraps):
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    dist.destroy_process_group()

def calls(times):
    for _ in range(times["save"]):
        torch.save(1, "x.pt")
    for _ in range(times["load"]):
        torch.load("x.pt")
    for _ in range(times["move"]):
        torch.nn.Linear(1, 1).to("cpu")
        torch.nn.Linear(1, 1).cpu()
    for _ in range(times["card"]):
        with suppress(Exception):
            torch.cuda.set_device(0)
    for _ in range(times["dist"]):
        with suppress(ValueError):
            mmengine.dist.init_dist("no such launcher")
    for _ in range(times["spawn"]):
        mp.start_processes(nothing, nprocs=1, start_method="fork")

def main():
    times = json.loads(sys.argv[1])
    ddp_probe.activate()
    calls(times["parent"])
    group("parent", times["parent"]["wrap"])
    from ddp_probe.traced.patching.guard import guard
    for _ in range(9):
        guard.attempt("save", lambda: 1 / 0)
    child = os.fork()
    if not child:
        torch.load("x.pt")  # Not counted: this child is silent so far.
        if sys.argv[2] == "activate":
            ddp_probe.activate()
        group("child", times["child"]["wrap"])
        calls(times["child"])
        os._exit(0)  # What gloo left in the parent cannot be torn down in a fork.
    sys.exit(os.waitpid(child, 0)[1])

if __name__ == "__main__":
    main()
"""
_TIMES = {
    "parent": {"load": 153, "save": 30, "move": 7, "card": 2, "wrap": 2, "dist": 4, "spawn": 2, "group": 1},
    "child": {"load": 3, "save": 2, "move": 1, "card": 1, "wrap": 1, "dist": 1, "spawn": 1, "group": 1},
}


@pytest.fixture(scope="module", params=["group", "activate"])
def told(request: Any, run_python: Any, clean_env: Any, tmp_path_factory: Any, read_events: Any) -> Dict[str, List[Dict[str, Any]]]:
    """What the parent wrote and what the child wrote, with the child promoted by init_process_group or by activate()."""
    pytest.importorskip("mmengine")
    import json

    folder = tmp_path_factory.mktemp("counts")
    (folder / "train.py").write_text(_PROGRAM)
    env = clean_env(DDP_PROBE_DIR=str(folder / "runs"), DDP_PROBE_STRICT=None, DDP_PROBE_FIX="atomic-save")
    done = run_python(["train.py", json.dumps(_TIMES), request.param], env=env, cwd=folder, timeout=120)
    assert done.returncode == 0, done.stderr
    files = [read_events(path) for path in (folder / "runs").rglob("rank*.jsonl") if not path.parent.is_symlink()]
    assert len(files) == 2
    files.sort(key=lambda events: -sum(event["event"] == "checkpoint.load" for event in events))
    return dict(zip(("parent", "child"), files))


@pytest.mark.parametrize("who", ["parent", "child"])
def test_each_counts_its_own_calls(told: Dict[str, List[Dict[str, Any]]], who: str) -> None:
    """The coverage of parent and child names, for each target, the calls that this process made."""
    (coverage,) = [event for event in told[who] if event["event"] == "probe.coverage"]
    found = {target["target"]: target.get("calls", 0) for target in coverage["targets"]}
    assert {name: found[name] for name in _KINDS} == {name: _TIMES[who][kind] for name, kind in _KINDS.items()}


def test_the_child_records_each_call(told: Dict[str, List[Dict[str, Any]]]) -> None:
    """No call of the child's is left out because its parent had made many from the same line, or because a probe had failed there."""
    begun = [event["event"] for event in told["child"] if event["phase"] == "begin"]
    assert (begun.count("checkpoint.load"), begun.count("checkpoint.save")) == (3, 2)
    assert not [event for event in told["child"] if event.get("nth")]


def test_the_last_line_is_the_childs(told: Dict[str, List[Dict[str, Any]]]) -> None:
    """The last line of the child counts its own lines and none of its parent's faults."""
    (end,) = [event for event in told["child"] if event["event"] == "process.end"]
    assert "faults" not in end
    assert end["lines"] == len(told["child"]) - 1
    assert [event["faults"] for event in told["parent"] if event["event"] == "process.end"] == [{"save": 5}]


def test_nothing_of_the_parent_is_remembered(told: Dict[str, List[Dict[str, Any]]]) -> None:
    """The first wrap of the child names no move of the parent's; the parent's own wrap does."""
    first = {who: next(event for event in events if event["event"] == "ddp.init") for who, events in told.items()}
    assert first["parent"]["last_move"].startswith("torch.nn.modules.linear.Linear.cpu(cpu) at ")
    assert "last_move" not in first["child"]


def test_a_remedy_tells_again(told: Dict[str, List[Dict[str, Any]]]) -> None:
    """What a remedy did often in the parent is recorded from the first time in the child."""
    applied = [event for event in told["child"] if event["event"] == "remedy.applied"]
    assert len(applied) == _TIMES["child"]["save"]
