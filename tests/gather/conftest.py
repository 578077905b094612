"""A simulated run of four hosts, in which one rank was killed, and its report."""

import subprocess
import sys
from pathlib import Path

import pytest
from gathering import Gathers, Rank0, without_paths

from ddp_probe.moving.gather.messages import Nothing, Wanted


@pytest.fixture(scope="session")
def whole_run(repo, clean_env, tmp_path_factory):
    """The folder of a run of 16 ranks on node1 to node4, with all files."""
    out = tmp_path_factory.mktemp("shared")
    command = [
        sys.executable,
        str(repo / "scripts" / "simulate_ranks"),
        "16",
        "--hosts",
        "4",
        "--events",
        "60",
        "--fault",
        "killed:9",
        "--out",
        str(out),
    ]
    done = subprocess.run(command, env=clean_env(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture(scope="session")
def report(run_python):
    """Return the report of a folder, without its paths."""

    def read(folder):
        done = run_python(["-m", "ddp_probe", "report", folder, "--json"])
        assert not done.stderr, done.stderr
        return without_paths(done.stdout)

    return read


@pytest.fixture(scope="session")
def whole_report(report, whole_run):
    """The report of the whole run, read from one shared folder: rank 9 was killed."""
    found = report(whole_run)
    assert [finding["ranks"] for finding in found["findings"]] == [[9]]
    return found


@pytest.fixture
def launch(clean_env, free_port):
    """Return a launch of gather over some ranks on this machine."""
    return lambda world: Gathers(clean_env, world, free_port())


@pytest.fixture
def rank0(tmp_path):
    """Rank 0, whose own host and rank 2 have nothing to bring."""
    made = Rank0(tmp_path / "kept")
    made.take()
    for rank in (0, 2):
        line = made.hello(rank)
        line.wait(Wanted)
        line.say(Nothing("There is none"))
    return made
