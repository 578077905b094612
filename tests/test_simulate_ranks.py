"""scripts/simulate_ranks writes launches that are read like real ones, and in which the diagnosis names the rank that a fault was injected at."""

import json
import subprocess
import sys
from collections import Counter

import pytest

from ddp_probe.diagnose import judge
from ddp_probe.read import load

pytestmark = pytest.mark.slow

CAUSES = {
    "model_on_cpu": "model_on_cpu_at_ddp_wrap",
    "killed": "rank_stopped_participating",
    "missing": "rank_stopped_participating",
    "other_model": "rank_dependent_model_build",
    "env_skew": "env_var_skew",
}


@pytest.fixture
def simulate(repo, tmp_path, clean_env):
    """Run the program; return the run's folder."""

    def run(*args):
        command = [sys.executable, str(repo / "scripts" / "simulate_ranks"), *map(str, args), "--out", str(tmp_path / "runs")]
        done = subprocess.run(command, env=clean_env(), capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def test_a_healthy_launch_is_clear(simulate):
    """Twenty ranks on three hosts, all lines of the real writer checked against the schema, are read without a fault and judged clear."""
    folder = simulate(20, "--events", 60)
    run = load([folder])
    assert judge(run).verdict == "clear"
    assert (run.expected, sorted(run.ranks), run.missing) == (20, list(range(20)), [])
    assert (run.inventory.skipped, run.inventory.unreadable) == ({}, {})
    assert Counter(process.lines for process in run.processes) == {60: 20}
    assert {process.host for process in run.processes} == {"node1", "node2", "node3"} == {launcher.host for launcher in run.launchers}
    assert 0 < (run.inventory.clock_spread or 0) < 0.1


@pytest.mark.parametrize("fault", CAUSES)
def test_the_injected_rank_is_named(simulate, fault):
    """Each fault at one rank of twenty is the first finding, at that rank and at no other."""
    diagnosis = judge(load([simulate(20, "--events", 60, "--fault", fault + ":13")]))
    assert diagnosis.verdict == "found", diagnosis.undecided
    assert diagnosis.findings[0].ranks == [13], diagnosis.findings[0]
    assert diagnosis.findings[0].cause == CAUSES[fault]


def test_the_writer_is_the_real_one(simulate, repo, read_events):
    """The lines have the fields that a recorded job's have, in their order, event by event; numbers run without a gap."""
    recorded = read_events(repo / "tests" / "recorded" / "new" / "00_healthy_cards")
    known = {(line["event"], line["phase"]): list(line) for line in recorded}
    lines = [line for line in read_events(simulate(2, "--events", 60)) if (line["event"], line["phase"]) in known]
    envelope = ["event", "phase", "ts", "mono_ns", "seq", "rank", "local_rank", "world_size", "host", "pid", "run"]
    for line in lines:
        expected = known[line["event"], line["phase"]]
        assert [name for name in line if name in expected] == [name for name in expected if name in line]
        assert set(envelope) - {"rank", "local_rank", "world_size"} <= set(line)
    for pid in {line["pid"] for line in lines}:
        assert len({line["seq"] for line in lines if line["pid"] == pid}) == len([line for line in lines if line["pid"] == pid])


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ((4, "--fault", "gremlins"), "there is no fault 'gremlins'"),
        ((4, "--fault", "killed:4"), "one of 0 to 3"),
        ((1, "--fault", "killed"), "two ranks at least"),
        ((4, "--events", 3), "has to be 24 or more"),
        ((4, "--hosts", 3), "cannot be laid out"),
        ((4, "--fault", "killed", "--healthy"), "not allowed with"),
    ],
)
def test_a_mistake_is_said(repo, tmp_path, clean_env, args, why):
    """What cannot be simulated is exit code 2 with its reason, and nothing is written."""
    command = [sys.executable, str(repo / "scripts" / "simulate_ranks"), *map(str, args), "--out", str(tmp_path / "runs")]
    done = subprocess.run(command, env=clean_env(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert why in done.stderr
    assert not list(tmp_path.glob("runs/*"))


def test_the_files_have_what_a_killed_rank_leaves(simulate, read_events):
    """The killed rank has no end line, its launcher tells of SIGKILL, and the ranks that see it die tell of a peer."""
    lines = read_events(simulate(8, "--events", 40, "--fault", "killed:2"))
    ends = {line["rank"] for line in lines if line["event"] == "process.end"}
    assert 2 not in ends
    assert all("Connection closed by peer" in json.dumps(line) for line in lines if line["event"] == "process.end")
    assert {line["child_local_rank"] for line in lines if line.get("signal") == "SIGKILL"} == {2}
