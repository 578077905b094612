"""All processes of one launch agree on one folder, and two launches never share one."""

import os
import subprocess
import sys
import time

from ddp_probe.activation.run_folder import folder


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
    from ddp_probe.reading import find

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


def test_mpirun_in_a_batch_script_of_slurm(tmp_path):
    """Only the ranks of other hosts carry a step of SLURM, as recorded under Open MPI 4.1 in an sbatch script; all take the name of the MPI job."""
    env = {"SLURM_JOB_ID": "1", "SLURM_PROCID": "0", "PMIX_NAMESPACE": "1116733441", "DDP_PROBE_DIR": str(tmp_path)}
    here, elsewhere = {**env, "OMPI_COMM_WORLD_RANK": "0"}, {**env, "OMPI_COMM_WORLD_RANK": "1", "SLURM_STEP_ID": "0"}
    assert folder("rank", 0, here) == folder("rank", 1, elsewhere) == str(tmp_path / "job-1116733441")


def _wrote(folder, rank, pid, ago=0.0, text=""):
    """A rank's file, last written some seconds ago, as is the folder."""
    os.makedirs(folder, exist_ok=True)
    host = os.uname().nodename.split(".")[0]
    path = os.path.join(folder, "rank%05d.%s.%d.jsonl" % (rank, pid if isinstance(pid, str) else host, pid if isinstance(pid, int) else 1))
    with open(path, "w") as file:
        file.write(text)
    for each in (path, folder):
        os.utime(each, (time.time() - ago, time.time() - ago))


def _gone():
    """The pid of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-S", "-c", "pass"])
    process.wait()
    return process.pid


def test_ranks_started_by_hand_meet(tmp_path):
    """Ranks of one rendezvous join one folder, whatever started each of them; the next launch gets the next one."""
    env = {"MASTER_PORT": "29511", "DDP_PROBE_DIR": str(tmp_path)}
    first = folder("rank", 0, env)
    _wrote(first, 0, _gone())
    assert folder("rank", 1, env) == first
    assert folder("rank", 1, {**env, "MASTER_PORT": "29512"}) != first
    assert folder("rank", 1, {**env, "MASTER_ADDR": "node7"}) != first
    _wrote(first, 1, _gone())
    second = folder("rank", 0, env)
    assert second != first
    _wrote(second, 0, _gone())
    assert folder("rank", 1, env) == second


def test_a_parent_of_its_own_does_not_part_a_rank(tmp_path):
    """`timeout 40 python train.py` for each rank is one launch: the folder's name has no parent in it, with a port and without one."""
    code = "import os; from ddp_probe.activation.run_folder import folder; print(folder('rank', 1, os.environ))"
    for port in ({"MASTER_PORT": "29511"}, {}):
        env = {**os.environ, "DDP_PROBE_DIR": str(tmp_path), **port}
        plain = [sys.executable, "-c", code]
        commands = [plain, ["timeout", "40", *plain], ["sh", "-c", '"$0" -c "$1"; true', sys.executable, code]]
        assert len({subprocess.check_output(command, env=env) for command in commands}) == 1


def test_a_launch_that_has_ended_is_not_joined(tmp_path):
    """What failed a minute or ten before is another launch, even if this rank had no part in it; what still runs is joined at any age."""
    env = {"MASTER_PORT": "29511", "DDP_PROBE_DIR": str(tmp_path)}
    first = folder("rank", 0, env)
    for ago in (60, 600):
        _wrote(first, 0, _gone(), ago)
        assert folder("rank", 1, env) != first
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    _wrote(first, 0, process.pid)
    os.utime(first, (1, 1))
    assert folder("rank", 1, env) == first
    for file in os.listdir(first):  # this pid had another owner when the file was written
        os.utime(os.path.join(first, file), (1, 1))
    assert folder("rank", 1, env) != first
    process.communicate()


def test_a_rank_on_another_host(tmp_path):
    """Whether a rank of another host still runs is told by its file: fresh, and without a last line."""
    env = {"MASTER_ADDR": "node7", "MASTER_PORT": "29511", "DDP_PROBE_DIR": str(tmp_path)}
    first = folder("rank", 0, env)
    _wrote(first, 0, "node7", 300)
    assert folder("rank", 1, env) == first
    _wrote(first, 0, "node7", 300, '{"event":"process.end"}\n')
    assert folder("rank", 1, env) != first
    _wrote(first, 0, "node7", 4000)
    assert folder("rank", 1, env) != first
