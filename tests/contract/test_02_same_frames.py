"""Promise 2, for the functions that the ledger watches: no frame is added, and each line stays where it was."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
_PROGRAM = Path(__file__).parent / "programs" / "frames_seen.py"


def test_each_watched_function_has_the_frames_of_the_bare_one(armed: Any, run_python: Any, tmp_path: Path) -> None:
    """Below each function of the ledger's tables stacklevel, f_back, _getframe(n), inspect.stack() and tracebacks are as without the probe."""
    plain = run_python([str(_PROGRAM)], env=armed(None), cwd=tmp_path, timeout=200)
    watched = run_python([str(_PROGRAM), "armed"], env=armed(tmp_path / "runs"), cwd=tmp_path, timeout=200)
    assert plain.returncode == watched.returncode == 0, plain.stderr + watched.stderr
    bare, told = json.loads(plain.stdout), json.loads(watched.stdout)
    functions = [name for name in bare["found"] if not name.startswith("Work.")]
    assert len(functions) > 50, functions
    assert sorted(told["swaps"]) == sorted(functions), "not each of them is watched"
    different = [name for name, one in bare["found"].items() if told["found"][name] != one]
    assert not different, {name: (bare["found"][name], told["found"][name]) for name in different[:2]}
    blind = [name for name in functions if not bare["found"][name]["seen"]]
    assert {name.rpartition(".")[2] for name in blind} <= {"init_process_group", "split_group"}, blind  # They refuse before they ask.


def test_a_warning_of_a_full_backward_hook_names_the_same_line(armed: Any, run_python: Any, tmp_path: Path) -> None:
    """A filter that makes an error of a warning in the main module ends a backward pass with the probe if it does without it, and not else."""
    program = [str(_PROGRAM.with_name("warns_in_backward.py"))]
    plain = run_python(program, env=armed(None), cwd=tmp_path, timeout=100)
    watched = run_python(program, env=armed(tmp_path / "runs", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0"), cwd=tmp_path, timeout=100)
    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout), watched.stderr
    assert "Error" in plain.stdout or "__main__" in plain.stdout, plain.stdout


def test_an_interrupt_shows_hardly_ever_a_frame_of_ours(armed: Any, run_python: Any, tmp_path: Path) -> None:
    """Of 500 interrupts that a training loop catches, at most one in a hundred shows a file of ours, however often they came inside our code."""
    env = armed(tmp_path / "runs", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    done = run_python([str(_PROGRAM.with_name("interrupted_often.py"))], env=env, cwd=tmp_path, timeout=150)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["caught"] == 500, told
    assert told["lines"] > 100, told
    assert told["shown"] * 100 <= told["caught"], told
