"""gather over hosts that are network namespaces: its report is the one of a shared folder."""

import sys

import pytest
from gathering import ended, split, without_paths
from namespaces import MASTER, network

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def hosts():
    """Four hosts, a to d."""
    made = network("abcd")
    try:
        yield made
    finally:
        made.remove()


def test_four_hosts_report_what_one_folder_reports(hosts, whole_run, whole_report, clean_env, tmp_path, report):
    """Four hosts with disks of their own at one path print the report of one shared folder, and each rank ends with its exit code."""
    (tmp_path / "local").mkdir()
    started = []
    for rank, name in reversed(list(enumerate("abcd"))):
        root = split(whole_run, tmp_path / name, str(rank + 1))
        named = {"RANK": str(rank), "WORLD_SIZE": "4", "LOCAL_RANK": "0", "MASTER_ADDR": MASTER, "MASTER_PORT": "29521"}
        env = clean_env(DDP_PROBE_DIR=str(tmp_path / "local"), **named)
        command = [sys.executable, "-m", "ddp_probe", "gather", "--json", "--time-limit", 200]
        started.append(hosts.start(name, command, env, (root, tmp_path / "local")))
    *others, first = map(ended, started)
    assert without_paths(first.stdout) == whole_report
    assert [done.returncode for done in (*others, first)] == [1] * 4
    assert [done.stdout + done.stderr for done in others] == [""] * 3
    gathered = tmp_path / "a" / (whole_run.name + ".gathered")
    assert {path.name for path in gathered.glob("*")} == {"gathered.json", "a.fold", "b.fold", "c.fold", "d.fold"}
    assert report(gathered) == whole_report


def test_torchrun_over_two_hosts(hosts, whole_run, whole_report, clean_env, tmp_path):
    """Under torchrun on two hosts, each with a folder of another name for the same launch, the report is that of one folder."""
    roots = [split(whole_run, tmp_path / "a", "12"), split(whole_run, tmp_path / "b", "34", "other-20")]
    launched = []
    for number, (name, root) in enumerate(zip("ab", roots)):
        agent = ["-m", "torch.distributed.run", "--nnodes=2", "--node_rank=%d" % number, "--nproc_per_node=1"]
        agent += [
            "--master_addr=" + MASTER,
            "--master_port=29522",
            "-m",
            "ddp_probe",
            "gather",
            "--json",
            "--time-limit",
            "200",
            "--code-file",
            tmp_path / "code",
        ]
        env = clean_env(DDP_PROBE="1", DDP_PROBE_DIR=str(root), GLOO_SOCKET_IFNAME="eth0")
        launched.append(hosts.start(name, [sys.executable, *agent], env))
    first, second = map(ended, launched)
    assert without_paths(first.stdout) == whole_report, first.stderr
    assert (first.returncode, second.returncode, second.stdout) == (0, 0, "")  # Else torchrun adds a traceback of its own.
    said = first.stderr + second.stderr
    assert "ChildFailedError" not in said
    assert said.count("Traceback") == said.count("in _exit_barrier")  # Of an agent that waits for another whose store has gone.
    assert (tmp_path / "code").read_text(encoding="ascii") == "1\n"
    assert "ddp_probe: The exit code is 1; below torchrun the ranks end with 0, unless --exit-code is given." in first.stderr.splitlines()
    assert "ddp_probe: gathered from 2 hosts: " in first.stderr
    assert sorted(path.name for path in roots[0].iterdir()) == [whole_run.name, whole_run.name + ".gathered"]
