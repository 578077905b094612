"""Folders of runs in which anything may be damaged are read by every command: an answer or a problem, in seconds, in a gigabyte."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from schedule import seed

_HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("part", range(2))
def test_any_folder_is_answered(part: int, whole: bool, clean_env: Callable[..., Dict[str, str]]) -> None:
    """Over damaged recorded runs, each command ends with one of its exit codes and no traceback, in 5 s of CPU and 1 GiB of addresses."""
    count = 5000 if whole else 100
    command = [sys.executable, str(_HERE / "programs" / "mutants.py"), str(seed()), str(count), str(_HERE.parent / "recorded"), str(part * count)]
    done = subprocess.run(command, env=clean_env(OMP_NUM_THREADS="1"), capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    *wrong, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert not wrong, wrong[:3]
    found: Any = last
    assert sum(found["tried"].values()) == count
