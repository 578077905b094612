"""A run of a colleague that may not be read: each command names what is closed, to whom it belongs, and DDP_PROBE_UMASK."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Tuple

import pytest

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "new" / "03_submodule_left_behind"
# What is imported late is imported before: the interpreter may lie where the ordinary user may not look.
_CODE = """\
import os, pwd, sys, io, contextlib
from ddp_probe.cli import main
readable, command = sys.argv[1], sys.argv[2:]
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    main([command[0], readable])
    main([command[0], readable + "/no such run"])
    pwd.getpwuid(65534)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
sys.exit(main(command))
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
    good = next(RECORDED.rglob("rank00000*.jsonl")).parent
    args = [part.replace("RUNS", str(colleague)) for part in command]
    done = run_python(["-c", _CODE, good, *args], env=clean_env(DDP_PROBE_STRICT=None), cwd="/")
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "%s may not be read by " % place in done.stderr
    assert "its permissions are d---------" in done.stderr
    assert "DDP_PROBE_UMASK=027" in done.stderr
    assert "not installed" not in done.stderr
    assert "No such" not in done.stderr
