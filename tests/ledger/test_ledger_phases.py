"""The phases of mmengine's Runner and of torch in the ledger of a real job, and what torch.compile makes of those that it meets."""

import json
import sys
from pathlib import Path
from typing import Any, Dict

import pytest

from ddp_probe.reading import whole_ledger

pytestmark = pytest.mark.slow

_PROGRAMS = Path(__file__).parent / "programs"
_RUNNER = _PROGRAMS / "runner_phases.py"


def _ledger(root: Path) -> whole_ledger.Ledger:
    (path,) = {path.resolve() for path in root.glob("*/rank*.ledger")}
    return whole_ledger.read(path)


def _line(words: str) -> int:
    (found,) = [number for number, text in enumerate(_RUNNER.read_text().splitlines(), 1) if text.endswith("# " + words)]
    return found


def test_the_phases_of_a_runner(armed: Any, run_python: Any, free_port: Any, tmp_path: Path) -> None:
    """Loops, checkpoints, saves, batches, forward and backward passes and steps of a Runner are counted, closed, and named by the line of the job."""
    env = armed(tmp_path / "runs", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", FREE_PORT=str(free_port()))
    done = run_python([str(_RUNNER)], env=env, cwd=tmp_path, timeout=250)
    assert done.returncode == 0, done.stderr
    phases: Dict[str, whole_ledger.Phase] = {phase.name: phase for phase in _ledger(tmp_path / "runs").phases}
    times = {name: phase.times for name, phase in phases.items()}
    steps = 2 * 4  # Sixteen rows in batches of four, in each of two epochs.
    assert (times["train"], times["validate"], times["test"], times["save"]) == (1, 2, 1, 2)
    assert times["checkpoint"] == 4  # The hook's function, and the Runner's inside it.
    assert (times["forward"], times["backward"], times["optimizer"]) == (steps, steps, steps)
    assert times["dataloader"] == 2 * 5 + 2 * 5 + 5  # One more each, for the end.
    assert not any(phase.is_open for phase in phases.values())
    assert phases["dataloader"].state == "raised"
    line = {name: phase.site.line for name, phase in phases.items() if phase.site is not None and phase.site.file == str(_RUNNER)}
    assert line == {
        **dict.fromkeys(set(phases) - {"test", "dataloader"}, _line("the line of the training")),
        **dict.fromkeys(("test", "dataloader"), _line("the line of the test")),
    }


@pytest.mark.skipif(sys.version_info < (3, 11), reason="torch 1.12 has no torch.compile")
def test_compiled_models_and_steps_are_the_same(armed: Any, run_python: Any, tmp_path: Path, whole: bool) -> None:
    """torch.compile gives the same graphs, breaks and results for DDP, split into buckets or not, and for optimizers; their phases are recorded."""
    program = [str(_PROGRAMS / "same_ddp_graphs.py"), *([] if whole else ["_ddp_outside", "_only_the_optimizer"])]
    plain = run_python(program, env=armed(None), cwd=tmp_path, timeout=290)
    watched = run_python(program, env=armed(tmp_path / "runs"), cwd=tmp_path, timeout=290)
    assert plain.returncode == watched.returncode == 0, plain.stderr + watched.stderr
    assert watched.stdout == plain.stdout
    times = {phase.name: phase.times for phase in _ledger(tmp_path / "runs").phases}
    assert min(times.get(name, 0) for name in ("forward", "backward", "optimizer")) > 0, times


def test_the_step_of_an_optimizer_is_watched_however_it_came(clean_env: Any, run_python: Any, tmp_path: Path) -> None:
    """The step of a class is watched from its first optimizer on: made before, unpickled, derived by the job, or made in two threads at once."""
    env = clean_env(DDP_PROBE_DIR=str(tmp_path / "runs"), DDP_PROBE_ECHO="off")
    done = run_python([str(_PROGRAMS / "optimizers_made.py")], env=env, cwd=tmp_path, timeout=200)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "before": ["Adagrad"],
        "unpickled": ["Adagrad", "Adamax"],
        "derived": ["Adagrad", "Adamax", "Rprop"],
        "threads": ["Adagrad", "Adamax", "Rprop", "ASGD"],
        "made": ["Adagrad", "Adamax", "Rprop", "ASGD", "SGD"],
        "swapped twice": [],
        "restored": [True, []],
        "steps": [5],
    }
