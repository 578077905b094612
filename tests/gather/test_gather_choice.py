"""Which run each host takes, and where ranks meet."""

import json

import pytest

from ddp_probe.moving.gather import choice
from ddp_probe.shared.meeting import of_slurm_step


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a run of one rank into a host's folder for runs, and become that host."""

    def written(host, name, rank, port, minute):
        folder = tmp_path / host / name
        folder.mkdir(parents=True, exist_ok=True)
        start = {"event": "process.start", "phase": "point", "ts": "2026-01-01T10:%02d:00Z" % minute, "rank": rank, "world_size": 4, "host": host}
        start["environment"] = {"MASTER_ADDR": "n1", "MASTER_PORT": str(port)}
        (folder / ("rank%05d.%s.1.jsonl" % (rank, host))).write_text(json.dumps(start) + "\n")
        monkeypatch.setenv("DDP_PROBE_DIR", str(tmp_path / host))
        return str(folder)

    return written


def test_a_run_of_another_name(write):
    """A host takes the run of the name that rank 0 has named, else one of the same rendezvous and time, and nothing else."""
    write("a", "first", 0, 29500, 1)
    wanted = choice.here("").run
    assert (wanted.name, wanted.ranks, wanted.world) == ("first", [0], 4)
    same = write("b", "second", 1, 29500, 2)
    write("b", "third", 1, 29501, 3)
    assert choice.folder_of(wanted, choice.here("")) == same
    write("c", "fourth", 1, 29501, 1)
    write("c", "fifth", 1, 29500, 59)
    assert choice.folder_of(wanted, choice.here("")) == ""
    named = write("c", "first", 1, 29502, 30)
    assert choice.folder_of(wanted, choice.here("")) == named


def test_the_newest_run_is_not_a_gathered_one(write, tmp_path):
    """What gather has left beside the runs is not a run of its own."""
    folder = write("a", "first", 0, 29500, 1)
    write("a", "first.gathered", 0, 29500, 2)
    assert choice.here("").folder == folder
    assert choice.here("first").folder == folder
    assert choice.here("nothing").why.startswith("No such file or folder: nothing.")
    assert choice.here(folder + "/rank00000.a.1.jsonl").why.endswith("gather takes the name or the folder of a run.")
    assert choice.here("first:2").run.launch == 2


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("gpu[007-011,20],login1", "gpu007"), ("n1,n2", "n1"), ("n[3,5-6]-ib", "n3-ib"), ("tiger", "tiger"), ("", "")],
)
def test_the_first_host_of_a_step(nodes, first):
    """Without MASTER_ADDR the tasks of a step of SLURM meet on its first host, at a port of the job and the step."""
    address, port = of_slurm_step({"SLURM_JOB_ID": "1234", "SLURM_STEP_ID": "2", "SLURM_STEP_NODELIST": nodes})
    assert (address, port) == (first, 28256 if first else 0)
    assert of_slurm_step({"SLURM_STEP_NODELIST": nodes}) == ("", 0)
