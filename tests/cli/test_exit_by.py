"""The exit codes of `report --exit-by restart`: one for each answer, none of which Python uses itself."""

import shutil
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "new"
_TAKEN = "RuntimeError: The server socket has failed to listen on any local network address. EADDRINUSE\n"
_ECC = "[rank1]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n"


@pytest.fixture
def code(tmp_path: Path, run_python: Any, clean_env: Callable[..., Dict[str, str]]) -> Callable[[str], int]:
    """Take a recorded job or a plain log, and return the code."""

    def ask(job: str) -> int:
        path = tmp_path / "job"
        if (RECORDED / job).is_dir():
            shutil.copytree(str(RECORDED / job), str(path))
        else:
            path.write_text(job, encoding="utf-8")
        command = ["-m", "ddp_probe", "report", "--brief", "--exit-by", "restart", path]
        done = run_python(command, env=clean_env())
        return int(done.returncode)

    return ask


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ("00_healthy_ddp", 0),
        ("12_killed_by_sigkill", 3),
        (_TAKEN, 10),
        (_ECC, 11),
        ("06_disk_full_while_saving", 12),
        ("03_submodule_left_behind", 13),
        ("step 1\nstep 2\n", 3),
    ],
    ids=["well", "unknown", "yes", "elsewhere", "after", "no", "undecided"],
)
def test_each_answer_has_a_code(code: Callable[[str], int], job: str, expected: int) -> None:
    """A script can tell whether to start the job again here, elsewhere, later or not at all."""
    assert code(job) == expected


def test_usage_keeps_its_code(run_python: Any) -> None:
    """What cannot be read is 2, as in every other way; a way that does not exist is refused."""
    assert run_python(["-m", "ddp_probe", "report", "--exit-by", "restart", "/nowhere"]).returncode == 2
    assert run_python(["-m", "ddp_probe", "report", "--exit-by", "chance"]).returncode == 2
