"""Launches of the clients, with and without the probe, in an interpreter that ddp_probe is installed into.

launch             launch(client, way="", probe=True) -> Launch. One launch of a client in a folder of its own; way "" is the healthy one.
bare_interpreter   The bin folder of an environment that sees all packages of this one, and that nothing is installed into.
"""

import json
import os
import random
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple

import pytest
import schedule
from client_launch import QUIET, interpreter_in
from client_table import PROGRAMS, Client

# Only .venv-clients has what the programs import.
collect_ignore_glob = (
    []
    if find_spec("accelerate")
    else [
        *("test_clients.py", "test_fleets.py", "test_forms.py", "test_framework_pages.py"),
        *("test_held_out_loops.py", "test_states.py"),
    ]
)


class Launch(NamedTuple):
    """What a launch left."""

    code: int
    out: List[str]  # The lines of stdout, sorted: those of two ranks come in any order.
    err: str
    report: Dict[str, Any]  # What report --json printed; empty without the probe.
    report_code: int
    runs: List[str]  # The names of the folders that it wrote.
    here: Path  # The folder that it was started in.

    def named(self) -> str:
        """Return all that the report says of causes and open questions."""
        return json.dumps([self.report.get("findings"), self.report.get("undecided")])


@pytest.fixture
def bare_interpreter(tmp_path: Path) -> Path:
    """The bin folder of an environment that sees all packages of this one, and that nothing is installed into."""
    return interpreter_in(tmp_path / "venv")


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory: pytest.TempPathFactory, clean_env: Callable[..., Dict[str, str]]) -> Path:
    """The bin folder of such an environment that the probe is installed into as a user does it."""
    programs = interpreter_in(tmp_path_factory.mktemp("interpreter") / "venv")
    subprocess.run([str(programs / "python"), "-m", "ddp_probe", "install"], check=True, timeout=60, env=clean_env(), capture_output=True)
    return programs


@pytest.fixture
def launch(
    interpreter: Path, clean_env: Callable[..., Dict[str, str]], free_port: Callable[[], int], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Launch]:
    """Start a client, wait for it, and read the report."""

    def start(client: Client, way: str = "", probe: bool = True) -> Launch:
        folder = tmp_path_factory.mktemp("job") / "here"
        shutil.copytree(str(PROGRAMS), str(folder), ignore=shutil.ignore_patterns("__pycache__"))
        port = free_port()
        on = {"DDP_PROBE": "1"} if probe and not client.page[0] else {}  # The line of a page turns the probe on by itself.
        path = "%s:%s" % (interpreter, os.environ["PATH"])
        step = random.Random("%d %s" % (schedule.seed(), client.name)).randrange(2)
        env = clean_env(PATH=path, WAY=way or None, STEP=str(step), PORT=str(port), HOME=str(folder), PYTHONPATH=None, **QUIET, **on)
        line = client.command.format(port=port)
        done = _bash(line if probe else re.sub(r"DDP_PROBE([= ])1", r"DDP_PROBE\g<1>0", line), env, folder)
        report = _bash("python -m ddp_probe report --json " + client.reads, env, folder) if probe else None
        said = json.loads(report.stdout) if report and report.stdout.startswith("{") else {"said": report and report.stderr}
        runs = sorted(path.name for root in client.runs.split() for path in (folder / root).glob("*") if path.is_dir() and not path.is_symlink())
        return Launch(done.returncode, sorted(done.stdout.split("\n")), done.stderr, said, report.returncode if report else 0, runs, folder)

    return start


def _bash(line: str, env: Dict[str, str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a line of bash; a timeout ends the whole session."""
    return subprocess.run(
        ["timeout", "--kill-after=5", "150", "bash", "-c", line],
        env=env,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
