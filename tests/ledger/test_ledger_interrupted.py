"""What an exception that comes between two instructions of the ledger's hot path leaves behind: nothing, from the next call on."""

import json
from pathlib import Path
from typing import Any

import pytest

from ddp_probe.reading import whole_ledger

pytestmark = pytest.mark.slow
_PROGRAM = Path(__file__).parent / "programs" / "interrupted.py"
_CALLS = ("reduce", "asynchronous", "dropped", "objects", "refused")
_BARRIERS = ("barrier",)
_PHASES = ("backward", "step", "batches", "refused_backward")
_MOST = {"asynchronous": 860, "step": 390}
"""How many bytecodes of ours a call and its wait, and a phase below two functions of torch's, may take, with the way through eight frames."""


@pytest.mark.parametrize("scenarios", [_CALLS, _BARRIERS, _PHASES], ids=["calls", "barriers", "phases"])
def test_an_exception_after_each_bytecode_leaves_nothing_behind(scenarios: Any, armed: Any, run_python: Any, tmp_path: Path) -> None:
    """After an exception at each bytecode in turn, nothing is open, numbers have no gap, sums and counts are right; and they are not too many."""
    env = armed(tmp_path / "runs", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    done = run_python([str(_PROGRAM), *scenarios], env=env, cwd=tmp_path, timeout=280)
    assert done.returncode == 0, done.stderr
    for name, (bytecodes, wrong) in json.loads(done.stdout).items():
        assert 200 < bytecodes < _MOST.get(name, 2_000), (name, bytecodes)
        assert not wrong, (name, wrong)


def test_no_method_of_a_tensor_is_called(armed: Any, run_python: Any, tmp_path: Path) -> None:
    """Tensors whose methods, properties and dispatch end the job are described, alone and in lists, without one of them being called."""
    env = armed(tmp_path / "runs", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    done = run_python([str(_PROGRAM.with_name("hostile_tensors.py"))], env=env, cwd=tmp_path, timeout=120)
    assert (done.returncode, done.stdout) == (0, "ran []\n"), done.stderr


@pytest.mark.parametrize("kind", ["Exception", "RecursionError", "KeyboardInterrupt"])
def test_no_exception_of_a_handler_is_lost_while_work_goes(kind: str, armed: Any, run_python: Any, tmp_path: Path) -> None:
    """What a handler raises again and again, while a job lets go of work that it has not waited for, reaches the job each time."""
    env = armed(tmp_path / "runs", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    done = run_python([str(_PROGRAM.with_name("drops_work.py")), kind], env=env, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["raised"] > 100, told
    assert (told["caught"], told["lost"]) == (told["raised"], []), told
    (ledger,) = {path.resolve() for path in (tmp_path / "runs").glob("*/rank*.ledger")}
    states = {one.state for one in whole_ledger.read(ledger).records if one.op == "all_reduce"}
    assert "dropped" in states, states
    assert "open" not in states, states


def test_a_function_that_is_not_what_its_source_says_is_left_alone(armed: Any, run_python: Any, read_events: Any, tmp_path: Path) -> None:
    """Code that another tool has put into a function stays, runs, and is not recorded; the list of what is watched says so and why."""
    env = armed(tmp_path / "runs", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    done = run_python([str(_PROGRAM.with_name("unlike_its_source.py"))], env=env, cwd=tmp_path, timeout=120)
    assert (done.returncode, done.stdout) == (0, "[1.0, 1.0, 1.0] another tool was here\n"), done.stderr
    (ledger,) = {path.resolve() for path in (tmp_path / "runs").glob("*/rank*.ledger")}
    assert [one.op for one in whole_ledger.read(ledger).records if one.op in ("all_reduce", "broadcast")] == ["broadcast"]
    (coverage,) = [event for event in read_events(ledger.parent) if event["event"] == "probe.coverage"]
    told = [each for each in coverage["targets"] if each["probe"] == "ledger"]
    assert [(one["target"], one["state"]) for one in told] == [("torch.distributed.distributed_c10d.all_reduce", "skipped")]
    assert "its source is not what runs" in told[0]["because"]


def test_what_opens_the_ledger_and_what_closes_it_can_be_cut_short(clean_env: Any, run_python: Any, tmp_path: Path) -> None:
    """After an exception in the first init_process_group, in the making of an optimizer or in restore(), the next call does all of it."""
    env = clean_env(DDP_PROBE_DIR=str(tmp_path / "runs"), DDP_PROBE_ECHO="off")
    done = run_python([str(_PROGRAM.with_name("cut_short.py")), "3", "1"], env=env, cwd=tmp_path, timeout=280)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["arrived"], told["wrong"]) == (9, []), told
