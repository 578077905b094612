"""All processes of one launch agree on one folder, and two launches never share one."""

import os

from ddp_probe.activation._run import folder


def test_a_launcher_names_the_run(tmp_path):
    """Two launchers take two names under DDP_PROBE_DIR."""
    env = {"DDP_PROBE_DIR": str(tmp_path)}
    first, second = folder("launcher", None, env), folder("launcher", None, env)
    assert first != second
    assert os.path.dirname(first) == str(tmp_path)


def test_the_default_is_under_the_launch_directory(tmp_path, monkeypatch):
    """Without DDP_PROBE_DIR runs are collected under the current folder, as an absolute path."""
    monkeypatch.chdir(tmp_path)
    assert os.path.dirname(folder("solo", None, {})) == str(tmp_path / "ddp_probe_runs")


def test_a_home_folder_is_spelt_out(monkeypatch):
    """A ~ in DDP_PROBE_DIR is the home folder, as a shell would have it, for the job and for the reader."""
    from ddp_probe.read import find

    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("DDP_PROBE_DIR", "~/runs")
    assert os.path.dirname(folder("launcher", None, {"DDP_PROBE_DIR": "~/runs"})) == find.root() == "/home/somebody/runs"


def test_ranks_take_the_launchers_run():
    """What the launcher has named is what its ranks use, and what a launcher below it uses."""
    env = {"DDP_PROBE_RUN": "/runs/one"}
    assert folder("rank", 3, env) == "/runs/one"
    assert folder("launcher", None, env) == "/runs/one"


def test_a_launch_from_within_a_rank_is_a_run_of_its_own():
    """A rank that starts torchrun again, say for an evaluation, does not mix it into its own run."""
    env = {"DDP_PROBE_RUN": "/runs/one", "DDP_PROBE_ARMED": "1:0:0", "DDP_PROBE_DIR": "/runs"}
    assert folder("launcher", None, env) != "/runs/one"


def test_a_program_without_a_launcher_takes_a_new_name():
    """A program of its own does not write into the run of whoever started it, but its children do write into its own."""
    env = {"DDP_PROBE_ORIGIN": "/runs/parent", "DDP_PROBE_DIR": "/runs"}
    assert folder("solo", None, env) != "/runs/parent"
    assert folder("launcher", None, env) != "/runs/parent"
    assert folder("rank", 0, env) == "/runs/parent"


def test_slurm_steps(tmp_path):
    """Under srun the job and step name the run on every host, also for a torchrun on each of them."""
    env = {"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0", "DDP_PROBE_DIR": str(tmp_path)}
    assert folder("rank", 5, env) == folder("launcher", None, env) == str(tmp_path / "slurm-77.0")
    assert folder("rank", 5, {**env, "SLURM_RESTART_COUNT": "2"}) == str(tmp_path / "slurm-77.0-r2")


def test_mpi_jobs(tmp_path):
    """Under mpirun the namespace of the job names the run."""
    env = {"PMIX_NAMESPACE": "prterun-host-42@1", "DDP_PROBE_DIR": str(tmp_path)}
    assert folder("rank", 0, env) == folder("rank", 1, env) == str(tmp_path / "job-prterun-host-42_1")


def test_ranks_started_by_hand_meet(tmp_path):
    """Ranks started by one shell join one folder; the next launch of the same shell gets the next one."""
    env = {"MASTER_PORT": "29511", "DDP_PROBE_DIR": str(tmp_path)}
    first = folder("rank", 0, env)
    os.makedirs(first)
    open(os.path.join(first, "rank00000.host.1.jsonl"), "w").close()
    assert folder("rank", 1, env) == first
    open(os.path.join(first, "rank00001.host.2.jsonl"), "w").close()
    second = folder("rank", 0, env)
    assert second != first
    os.makedirs(second)
    open(os.path.join(second, "rank00000.host.3.jsonl"), "w").close()
    assert folder("rank", 1, env) == second


def test_an_old_folder_is_not_joined(tmp_path):
    """A folder that nobody has joined for ten minutes belongs to an earlier launch."""
    env = {"MASTER_PORT": "29511", "DDP_PROBE_DIR": str(tmp_path)}
    first = folder("rank", 0, env)
    os.makedirs(first)
    os.utime(first, (1, 1))
    assert folder("rank", 1, env) != first
