"""runs lists what there is, newest first, from the first and last lines of the files."""

import fcntl
import json
import os
import platform
import pty
import shutil
import struct
import subprocess
import sys
import termios

import pytest


@pytest.fixture
def runs(run_python, tmp_path):
    """Run the command in an empty folder."""
    return lambda *args: run_python(["-m", "ddp_probe", "runs", *args], cwd=tmp_path)


def _write(folder, name, *events, modified=None):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    if modified is not None:
        os.utime(str(folder / name), (modified, modified))


START, END = {"event": "process.start", "world_size": 2}, {"event": "process.end", "world_size": 2}
KILLED = {"event": "launcher.child", "child_pid": 1, "exit_code": -9, "signal": "SIGKILL"}
ENDED = {"event": "launcher.child", "child_pid": 8, "exit_code": -15, "signal": "SIGTERM"}


@pytest.fixture(scope="module")
def recorded(repo, run_python, tmp_path_factory):
    """What the command says of the recorded jobs, by name; of a copy, as it keeps a verdict in each."""
    copy = tmp_path_factory.mktemp("recorded") / "new"
    shutil.copytree(str(repo / "tests" / "recorded" / "new"), str(copy))
    done = run_python(["-m", "ddp_probe", "runs", "--json", copy])
    return {row["name"]: row for row in json.loads(done.stdout)}


@pytest.mark.parametrize(
    ("name", "ended", "because", "ranks"),
    [
        ("00_healthy_runner_on_cards", "well", "", (4, 4)),
        ("12_killed_by_sigkill", "killed", "1 SIGKILL, 1 failed", (2, 2)),
        ("12_data_error_on_one_rank", "failed", "2 failed", (2, 2)),
        ("10_rank_never_started", "failed", "1 failed, 1 without a file", (1, 2)),
        ("10_launch_on_taken_port", "failed", "", (0, 2)),
        ("05_plain_python_eight_cards", "well", "", (1, 1)),
    ],
)
def test_recorded_runs_are_told_as_they_ended(repo, recorded, name, ended, because, ranks):
    """How a recorded job ended, and how many ranks it had of how many, is known from the ends of its files."""
    row = recorded[name]
    assert (row["ended"], row["because"], (row["ranks_seen"], row["ranks_expected"])) == (ended, because, ranks)
    assert row["hosts"] == ["node1"]
    assert row["bytes"] == sum(file.stat().st_size for file in (repo / "tests" / "recorded" / "new" / name).glob("*.jsonl"))


def test_the_newest_comes_first(tmp_path, runs):
    """Runs are ordered by when they were last written to, in the table and in JSON alike; the keys are those of the command's page."""
    for number, name in enumerate(("middle", "oldest", "newest")):
        _write(tmp_path / "ddp_probe_runs" / name, "rank00000.node1.1.jsonl", START, END, modified=1000 + (1, 0, 2)[number])
    done = runs()
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["run", "newest", "middle", "oldest"]
    rows = json.loads(runs("--json").stdout)
    assert [row["name"] for row in rows] == ["newest", "middle", "oldest"]
    page = runs("--help").stdout
    assert all(key in page for key in rows[0])


def test_states_are_told_apart(tmp_path, runs):
    """A child ended by a signal counts once, a launcher's SIGTERM does not; a run is running only if its process is alive on this host."""
    alive = {**START, "host": platform.node(), "pid": os.getpid()}
    _write(tmp_path / "a", "rank00000.n.1.jsonl", START)
    _write(tmp_path / "a", "launcher.n.jsonl", KILLED, KILLED, ENDED, {"event": "launcher.end", "exit_code": 1})
    _write(tmp_path / "b", "rank00000.n.1.jsonl", START, END)
    _write(tmp_path / "b", "launcher.n.jsonl", ENDED, {"event": "launcher.end"})
    _write(tmp_path / "c", "rank00000.n.1.jsonl", alive)
    _write(tmp_path / "d", "rank00000.n.1.jsonl", START, END)
    _write(tmp_path / "d", "rank00001.m.1.jsonl", START, END)
    _write(tmp_path / "e", "rank00000.n.1.jsonl", START, {**END, "uncaught": True})
    found = {row["name"]: (row["ended"], row["because"]) for row in json.loads(runs(str(tmp_path), "--json").stdout)}
    assert found == {
        "a": ("killed", "1 SIGKILL, 1 without a file"),
        "b": ("no end", "1 without a file"),
        "c": ("running", "1 without a file"),
        "d": ("well", ""),
        "e": ("failed", "1 failed, 1 without a file"),
    }


def test_an_empty_folder_says_what_to_do(tmp_path, runs):
    """No run at all is 2, as a wrong path is, and stderr says how to get one; --json is an empty list."""
    done = runs()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("No run found.\n  why: No such folder: %s." % (tmp_path / "ddp_probe_runs"))
    assert json.loads(runs("--json").stdout) == []
    assert runs("nowhere").returncode == 2


def test_garbage_is_a_run_without_an_end(tmp_path, runs):
    """Files that hold no event, and a name with an escape in it, make a row and no traceback; the escape is shown, not sent."""
    folder = tmp_path / "ddp_probe_runs" / "run\x1b[2J"
    folder.mkdir(parents=True)
    (folder / "rank00000.node1.1.jsonl").write_bytes(bytes(range(256)) * 100)
    (folder / "rank00001.node1.1.jsonl").write_bytes(b"")
    (folder / "launcher.node1.jsonl").write_bytes(b"[" * 100000)
    done = runs()
    assert (done.returncode, done.stderr) == (0, "")
    assert "run\\x1b[2J" in done.stdout
    assert "2 no end" in done.stdout


def test_the_table_fits_a_terminal(runs, tmp_path):
    """A run with a name that the probe gives fits 80 columns with all that can be said of it."""
    folder = tmp_path / "ddp_probe_runs" / "20261121-182604-2281-e26e"
    _write(folder, "rank00000.node1.1.jsonl", START)
    _write(folder, "rank00001.node2.1.jsonl", START, {**END, "uncaught": True})
    _write(folder, "launcher.node1.jsonl", KILLED, {"event": "launcher.end", "exit_code": 1})
    lines = runs().stdout.splitlines()
    assert lines[1].endswith("1 SIGKILL, 1 failed")
    assert max(len(line) for line in lines) <= 80


def test_the_command_and_the_verdict(tmp_path, runs):
    """A row has the launcher's command line as a person types it, uncut in a pipe, and what report would answer."""
    argv = ["/env/bin/python3.11", "-u", "-m", "torch.distributed.run", "--nproc_per_node=2", "train.py", "x" * 200]
    root = tmp_path / "ddp_probe_runs"
    _write(root / "a", "launcher.node1.jsonl", {"event": "launcher.start", "argv": argv}, {"event": "launcher.end"})
    _write(root / "a", "rank00000.node1.1.jsonl", {**START, "rank": 0, "argv": ["python", "train.py"]})
    (row,) = json.loads(runs("--json").stdout)
    assert row["command"] == "torchrun --nproc_per_node=2 train.py " + "x" * 200
    assert (row["verdict"], row["rules"]) == ("undecided", [])
    head, line = runs().stdout.splitlines()
    assert head.split() == ["run", "age", "ranks", "verdict", "ended", "command"]
    assert line.endswith(row["command"])
    assert " 1/2    undecided  " in line


def test_a_launch_of_two_folders_is_one_row(tmp_path, runs):
    """Two folders of one rendezvous are one run, of which no rank is missing."""
    env = {"MASTER_ADDR": "node0", "MASTER_PORT": "29500"}
    for rank in (0, 1):
        who = {"rank": rank, "world_size": 2, "ts": "2026-01-01T12:00:0%d.000000Z" % rank}
        _write(tmp_path / "ddp_probe_runs" / ("part%d" % rank), "rank%05d.node%d.1.jsonl" % (rank, rank), {**START, **who, "environment": env})
    (row,) = json.loads(runs("--json").stdout)
    assert (row["ranks_seen"], row["ranks_expected"], len(row["parts"])) == (2, 2, 2)
    assert "without a file" not in row["because"]


def test_each_run_has_a_verdict_that_is_kept(tmp_path, runs):
    """Nine runs have nine verdicts; what is kept is printed until a file of the run changes, and a link in its place is not followed."""
    root = tmp_path / "ddp_probe_runs"
    for number in range(9):
        _write(root / ("run%d" % number), "rank00000.node1.1.jsonl", {**START, "rank": 0}, END, modified=1000 + number)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine", encoding="utf-8")
    (root / "run8" / ".verdict.json").symlink_to(elsewhere)
    rows = json.loads(runs("--json").stdout)
    assert [row["verdict"] for row in rows] == ["undecided"] * 9
    assert elsewhere.read_text(encoding="utf-8") == "mine"
    kept = root / "run0" / ".verdict.json"
    told = json.loads(kept.read_text(encoding="utf-8"))
    kept.write_text(json.dumps({**told, "rules": ["DDP999"]}), encoding="utf-8")
    assert json.loads(runs("--json").stdout)[-1]["rules"] == ["DDP999"]
    _write(root / "run0", "rank00001.node1.1.jsonl", {**START, "rank": 1}, END, modified=1000)
    assert json.loads(runs("--json").stdout)[-1]["rules"] == []


def test_a_terminal_shows_both_ends_of_a_command(tmp_path, clean_env):
    """A command that is longer than its column loses its middle, not its end."""
    argv = ["python", "-m", "torch.distributed.run", "--nproc_per_node=2", "y" * 90, "--lr=0.1"]
    _write(tmp_path / "ddp_probe_runs" / "a", "launcher.node1.jsonl", {"event": "launcher.start", "argv": argv}, {"event": "launcher.end"})
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "ddp_probe", "runs"]
    subprocess.run(command, cwd=str(tmp_path), env=clean_env(), stdout=slave, check=True)
    os.close(slave)
    row = os.read(master, 4096).decode().splitlines()[1]
    os.close(master)
    assert len(row) <= 80
    assert "torchrun --nproc" in row
    assert row.endswith("--lr=0.1")
