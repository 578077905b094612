"""scripts/simulate_ranks writes launches that are read like real ones, and in which the diagnosis names the rank that a fault was injected at."""

import json
import random
import subprocess
import sys
from collections import Counter

import pytest
from schedule import seed

from ddp_probe.judging.judge import judge
from ddp_probe.reading import whole_ledger
from ddp_probe.reading.load_run import load
from ddp_probe.shared import ledger_schema as schema
from ddp_probe.showing.watch import ask, watch_look

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
    assert Counter(process.lines for process in run.processes) == {59: 20}  # A call has two lines; 60 are allowed.
    assert {process.host for process in run.processes} == {"node1", "node2", "node3"} == {launcher.host for launcher in run.launchers}
    assert 0 < (run.inventory.clock_spread or 0) < 0.1


@pytest.mark.parametrize("fault", CAUSES)
def test_the_injected_rank_is_named(simulate, fault):
    """Each fault at one rank of twenty is the first finding, at that rank and at no other."""
    diagnosis = judge(load([simulate(20, "--events", 60, "--fault", fault + ":13")]))
    assert diagnosis.verdict == "found", diagnosis.undecided
    assert diagnosis.findings[0].ranks == [13], diagnosis.findings[0]
    assert diagnosis.findings[0].cause == CAUSES[fault]


HANGS = {"absent": "DDP629", "other_op": "DDP627", "other_size": "DDP627", "behind": "DDP629"}


def test_the_rank_that_makes_sixty_four_hang_is_named(simulate):
    """A fault drawn from all hangs, at a rank drawn from sixty-four with two hundred calls each, is the one finding, at that rank and at no other."""
    drawn = seed()
    fault = random.Random(drawn).choice(sorted(HANGS))
    folder = simulate(64, "--events", 24, "--records", 200, "--fault", fault + ":random", "--seed", drawn)
    guilty = random.Random(str(drawn)).randrange(64)
    diagnosis = judge(load([folder]))
    found = [(finding.id, finding.ranks) for finding in diagnosis.findings]
    assert found == [(HANGS[fault], [guilty])], (fault, drawn, diagnosis)


@pytest.mark.parametrize("fault", HANGS)
def test_who_hangs_is_shown_live_and_by_stacks(simulate, fault):
    """Of eight ranks that wait, watch shows the guilty one in another place, unless only a size is wrong, and all have left their stacks."""
    folder = simulate(8, "--events", 24, "--records", 40, "--fault", fault + ":3")
    places = {one.rank: (one.op, one.number, one.phase) for one in watch_look.LiveView([folder]).look().ranks}
    assert sorted(places) == list(range(8))
    assert [rank for rank, place in places.items() if place != places[0]] == ([] if fault == "other_size" else [3])
    stacks = ask.collect([folder], lambda _: True, 0.0).stacks
    frames = {one.rank: one.threads[0].frames[-1].function for one in stacks}
    assert sorted(frames) == list(range(8))
    assert frames[0] == "all_reduce"


def test_the_ledgers_are_those_of_the_package(simulate, tmp_path):
    """Each rank's ledger has the calls that were asked for, numbered in two groups without a gap; more than the ring holds leave the last ones."""
    folder = simulate(4, "--hosts", 2, "--events", 24, "--records", 3000)
    process = load([folder]).ranks[2]
    found = whole_ledger.read(process.ledger_file)
    assert (found.problem, found.torn, len(found.records)) == ("", 0, schema.RECORDS)
    assert [record.number for record in found.records] == list(range(3001 - schema.RECORDS, 3001))
    assert found.header is not None
    assert (found.header.rank, found.header.world_size, found.header.pid, found.header.host) == (2, 4, process.pid, "node2")
    groups = {record.group.ranks: [] for record in found.records[:-1]}
    for record in found.records[:-1]:
        groups[record.group.ranks].append(record.seq)
    assert sorted(groups) == ["0-3", "2-3"]
    assert all(numbers == list(range(numbers[0], numbers[-1] + 1)) for numbers in groups.values())
    assert found.records[-1].op == "destroy_process_group"


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
        ((4, "--records", 3), "has to be 16 or more"),
        ((4, "--records", 40, "--fault", "killed"), "goes with no fault"),
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
