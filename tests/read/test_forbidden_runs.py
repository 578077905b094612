"""A run of a colleague that may not be read: each command names what is closed, to whom it belongs, and DDP_PROBE_UMASK."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Tuple

import pytest

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "new" / "03_submodule_left_behind"
# Root gives up what lets it read everything and stays the owner of its files: another user may be kept out of the folder of the checkout, or of the
# temporary folder. prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE) and CAP_DAC_READ_SEARCH hold from the next exec on.
_CODE = """\
import ctypes, os, sys
if os.geteuid() == 0:
    for capability in (1, 2):
        assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0
os.execv(sys.executable, [sys.executable, "-m", "ddp_probe", *sys.argv[1:]])
"""


@pytest.fixture
def colleague() -> Iterator[Path]:
    """A folder of runs with one run in it, all of it readable; outside of pytest's own folder, which each pytest closes that begins."""
    (run,) = [path.parent for path in RECORDED.rglob("rank00000*.jsonl")]
    with tempfile.TemporaryDirectory() as theirs:
        os.chmod(theirs, 0o755)
        made = Path(theirs) / "ddp_probe_runs"
        shutil.copytree(run, made / "run-1")
        yield made
        for place in (made, made / "run-1"):
            os.chmod(place, 0o755)


@pytest.mark.parametrize(
    ("closed", "command"),
    [
        ("", ("report", "RUNS/run-1")),
        ("", ("runs", "RUNS")),
        ("", ("logs", "RUNS/run-1/rank00000.x.jsonl")),
        ("run-1", ("report", "RUNS/run-1")),
        ("run-1", ("report", "--json", "RUNS/run-1")),
        ("run-1", ("logs", "RUNS/run-1")),
        ("run-1", ("stacks", "RUNS/run-1")),
        ("run-1", ("watch", "RUNS/run-1")),
        ("run-1", ("runs", "RUNS")),
        ("run-1", ("report", "RUNS")),
    ],
)
def test_what_is_closed_is_named(
    colleague: Path, run_python: Callable[..., Any], clean_env: Callable[..., Dict[str, str]], closed: str, command: Tuple[str, ...]
) -> None:
    """Neither "nothing is there" nor "not installed" is said of what may not be read, but the folder, its owner, its mode and the variable."""
    place = colleague / closed
    os.chmod(place, 0)
    args = [part.replace("RUNS", str(colleague)) for part in command]
    done = run_python(["-c", _CODE, *args], env=clean_env(DDP_PROBE_STRICT=None), cwd="/")
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "%s may not be read by " % place in done.stderr
    assert "its permissions are d---------" in done.stderr
    assert "DDP_PROBE_UMASK=027" in done.stderr
    assert "not installed" not in done.stderr
    assert "No such" not in done.stderr
