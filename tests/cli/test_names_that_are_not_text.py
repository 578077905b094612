"""Commands over a run of which a file has a name that is not UTF-8."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("command", [["report", "--brief"], ["bundle", "--list"], ["fold", "-o", "fold"], ["logs"]], ids=lambda command: command[0])
def test_a_name_that_is_not_text_ends_no_command_in_a_traceback(command: Any, repo: Path, run_python: Any, tmp_path: Path) -> None:
    """The name is read, or an error says which one to change, with an exit code of the help page."""
    run = Path(shutil.copytree(repo / "tests" / "recorded" / "new" / "00_healthy_ddp", tmp_path / "run"))
    log = next(run.glob("rank00000*.jsonl"))
    os.rename(os.fsencode(log), os.path.join(os.fsencode(run), b"rank00000.\xff\xfe.1.jsonl"))
    done = run_python(["-m", "ddp_probe", *command, run], cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 2, 3)
    if done.returncode == 2:
        assert r"\udcff\udcfe" in done.stderr
        assert "what to do: Rename the file" in done.stderr
