"""gather without a launcher, the files of the run, ranks that share a host or a folder, and command lines that are refused."""

import os
import re
import socket

import pytest
from gathering import ended, size, split, start, without_paths

pytestmark = pytest.mark.slow


@pytest.fixture
def gather(clean_env, tmp_path):
    """Run gather without a launcher over the runs in tmp_path."""
    return lambda *args: ended(start(["-m", "ddp_probe", "gather"], args, clean_env(DDP_PROBE_DIR=str(tmp_path))))


def test_one_host_and_the_files_of_its_run(gather, whole_run, whole_report, tmp_path, report):
    """Without a launcher gather reports this host's run; --logs brings its files, continues half of one, and reports them as the run itself."""
    split(whole_run, tmp_path, "1234")
    done = gather("--logs", "--json")
    assert without_paths(done.stdout) == whole_report, done.stderr
    assert "This launch has one host: there is nothing to fetch." in done.stderr
    kept = tmp_path / (whole_run.name + ".gathered")
    (logs,) = (kept / "logs").iterdir()
    originals = {path.relative_to(whole_run): path.read_bytes() for path in whole_run.rglob("*") if path.is_file()}
    assert {path.relative_to(logs): path.read_bytes() for path in logs.rglob("*") if path.is_file()} == originals
    assert report(logs)["findings"] == whole_report["findings"]
    half, changed = sorted(logs.glob("rank*.jsonl"))[:2]
    (logs / (half.name + ".part")).write_bytes(half.read_bytes()[:-700])
    half.unlink()
    changed.write_bytes(b"x" * (size(changed) - 1))
    again = gather("--logs", "--json")
    assert "%d KiB received" % round((700 + size(changed)) / 1024) in again.stderr
    assert {path.relative_to(logs): path.read_bytes() for path in logs.rglob("*") if path.is_file()} == originals


def test_files_beyond_the_bound_are_left_out(gather, whole_run, tmp_path):
    """What --max-bytes leaves out is told, the report does not change, and DIR of --into holds the rest."""
    split(whole_run, tmp_path, "1234")
    files = [path for path in whole_run.rglob("*") if path.is_file()]
    done = gather(whole_run.name, "--logs", "--max-bytes", 1, "--into", tmp_path / "kept", "--brief")
    assert "%d files of " % len(files) in done.stderr
    assert ", are left out: --max-bytes\n" in done.stderr
    assert (done.stdout[:24], done.returncode) == ("DDP615 killed-by-signal ", 1)
    assert sorted(path.suffix for path in (tmp_path / "kept").iterdir()) == [".fold", ".json"]


def test_ranks_of_one_host_and_of_one_folder(clean_env, whole_run, whole_report, tmp_path):
    """Under SLURM's variables, hosts that share a folder report it once, and a further rank of a host ends with the same exit code."""
    root = split(whole_run, tmp_path, "1234")
    step = {"SLURM_NTASKS": "3", "SLURM_JOB_ID": str(_free_job()), "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "localhost"}
    ranks = []
    for task, local in ((0, 0), (1, 0), (2, 1)):
        env = clean_env(DDP_PROBE_DIR=str(root), SLURM_PROCID=str(task), SLURM_LOCALID=str(local), **step)
        ranks.append(start(["-m", "ddp_probe", "gather"], ["--json", "--time-limit", 200], env))
    first, second, third = map(ended, ranks)
    assert without_paths(first.stdout) == whole_report
    assert re.search(r"\(rank [01]\) has the same files as another host\n", first.stderr)
    assert [done.returncode for done in (first, second, third)] == [1, 1, 1]
    assert second.stdout + third.stdout == ""


def test_a_launch_of_one_host_does_not_ask_its_agent(clean_env, whole_run, tmp_path):
    """At a port at which no agent listens, as with MASTER_PORT 0, the report comes at once."""
    root = split(whole_run, tmp_path, "1234")
    launch = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    env = clean_env(DDP_PROBE_DIR=str(root), TORCHELASTIC_USE_AGENT_STORE="True", **launch)
    done = ended(start(["-m", "ddp_probe", "gather"], ["--json"], env))
    assert "This launch has one host: there is nothing to fetch." in done.stderr
    assert "could not be asked" not in done.stderr
    assert done.returncode == 1


def _free_job():
    """Return a number of a job whose port is free."""
    for job in range(os.getpid() * 7, os.getpid() * 7 + 1000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", 20000 + job * 31 % 10000)):
                return job
    raise AssertionError("no port is free")


@pytest.mark.parametrize(
    ("args", "variables", "said"),
    [
        (["--time-limit", "0"], {}, "--time-limit 0 is not a valid time."),
        (["--max-bytes", "much"], {}, "--max-bytes much is not a valid size."),
        ([], {"RANK": "1", "WORLD_SIZE": "2"}, "The ranks cannot meet: MASTER_ADDR and MASTER_PORT is not set."),
        ([], {"PMIX_RANK": "1"}, "This is rank 1 of an unknown number."),
        (["nothing"], {}, "No host has the run nothing."),
        ([], {}, "No run found."),
    ],
    ids=["time", "size", "address", "world", "run", "none"],
)
def test_what_is_refused(args, variables, said, clean_env, tmp_path):
    """A wrong argument, a missing variable and a run that no host has are exit code 2, with what to do."""
    done = ended(start(["-m", "ddp_probe", "gather"], args, clean_env(DDP_PROBE_DIR=str(tmp_path), **variables)))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
    assert "what to do: " in done.stderr
    assert os.listdir(str(tmp_path)) == []
