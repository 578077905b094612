"""Whole launches: which processes leave a file, and where."""

import os
import subprocess
import sys

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import load

TRAIN = """
import gc, os, sys, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

def main():
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(4, 2))
    data = TensorDataset(torch.randn(8, 4))
    loader = DataLoader(data, batch_size=2, num_workers=2, multiprocessing_context=sys.argv[1])
    for (x,) in loader:
        model(x).sum().backward()
    print("rank", dist.get_rank(), "done", flush=True)
    del model  # The wrapped model keeps the group's threads running, and torch 2.13 then may abort at the end.
    gc.collect()
    dist.destroy_process_group()

if __name__ == "__main__":
    main()
"""

# What starts a process, and which file it leaves, does not hang on what the process trains.
MEET = """
import os, sys
import torch.distributed as dist
rank = {"rank": int(os.environ["SLURM_PROCID"]), "world_size": 2} if sys.argv[1:] == ["slurm"] else {}
dist.init_process_group("gloo", **rank)
dist.barrier()
dist.destroy_process_group()
"""

SPAWN = """
import gc, os, sys, torch
import torch.distributed as dist
import torch.multiprocessing as mp

def work(rank, port, method):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:%s" % port, rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    model(torch.randn(2, 4)).sum().backward()
    del model
    gc.collect()
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.start_processes(work, args=(sys.argv[1], sys.argv[2]), nprocs=2, start_method=sys.argv[2])
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_torchrun_with_workers(torchrun, script, probe_env, runs, method):
    """Two ranks with DataLoader workers leave two rank files and one launcher file in one folder, and no others."""
    done = torchrun(script(TRAIN), args=[method], env=probe_env())
    assert done.returncode == 0, done.stderr
    assert runs.kinds() == ["launcher", "rank00000", "rank00001"]


def test_torch_distributed_launch(run_python, script, probe_env, runs, free_port, tmp_path):
    """python -m torch.distributed.launch is a launcher like torchrun."""
    launch = ["-m", "torch.distributed.launch", "--nproc_per_node=2", "--master_port=%d" % free_port()]
    done = run_python([*launch, script(MEET)], env=probe_env(), cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert runs.kinds() == ["launcher", "rank00000", "rank00001"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_mp_spawn(run_python, script, probe_env, runs, free_port, read_events, tmp_path, method):
    """Children that call init_process_group are promoted; the program that starts them writes as their launcher."""
    done = run_python([script(SPAWN), free_port(), method], env=probe_env(), cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert runs.kinds() == ["launcher", "rank00000", "rank00001"]
    for rank in (0, 1):
        events = read_events(next(runs.only().glob("rank%05d.*.jsonl" % rank)))
        assert events[0]["event"] == "process.start"
        assert events[0]["role"] == "promoted"
        names = {(event["event"], event["phase"]) for event in events}
        assert {("dist.init_process_group", "begin"), ("dist.init_process_group", "end"), ("ddp.init", "end")} <= names


def test_two_launches_at_the_same_time(script, probe_env, runs, free_port, tmp_path):
    """Two launches side by side leave two folders, each whole."""
    path = script(MEET)
    launches = [
        subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=1", "--master_port=%d" % free_port(), str(path)],
            env=probe_env(),
            cwd=str(tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    assert [launch.wait(timeout=180) for launch in launches] == [0, 0]
    assert len(runs.folders()) == 2
    for folder in runs.folders():
        assert sorted(path.name.split(".")[0] for path in folder.iterdir() if path.suffix == ".jsonl") == ["launcher", "rank00000"]


def test_two_torchruns_of_one_rendezvous(script, probe_env, runs, free_port, tmp_path):
    """Two torchruns of one rendezvous are read as one run from either folder, and it is clear."""
    path = script(MEET)
    meet = ["--nnodes=2", "--nproc_per_node=1", "--rdzv_id=job", "--rdzv_backend=c10d", "--rdzv_endpoint=127.0.0.1:%d" % free_port()]
    command = [sys.executable, "-m", "torch.distributed.run", *meet, str(path)]
    launches = [subprocess.Popen(command, env=probe_env(), cwd=str(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(2)]
    said = [launch.communicate(timeout=180)[1] for launch in launches]
    assert [launch.returncode for launch in launches] == [0, 0], said
    assert len(runs.folders()) == 2
    for folder in runs.folders():
        found = load([str(folder)])
        assert (sorted(found.ranks), found.missing, len(found.launchers)) == ([0, 1], [], 2)
        assert judge(found).verdict == "clear"


def _by_hand(env_of, tmp_path, *command):
    ranks = [
        # Each below a parent of its own, as in `timeout 40 python train.py`.
        subprocess.Popen(["timeout", "110", sys.executable, *map(str, command)], env=env_of(rank), cwd=str(tmp_path), stdout=subprocess.DEVNULL)
        for rank in (0, 1)
    ]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]


def test_ranks_started_by_hand(script, probe_env, runs, free_port, tmp_path):
    """Ranks that a shell starts with RANK set meet in one folder without any launcher."""
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    _by_hand(lambda rank: probe_env(RANK=str(rank), LOCAL_RANK=str(rank), **common), tmp_path, script(MEET))
    assert runs.kinds() == ["rank00000", "rank00001"]


def test_srun(script, probe_env, runs, free_port, tmp_path):
    """Under srun's environment the job and step name the folder, and SLURM_PROCID the rank."""
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "2"}
    _by_hand(lambda rank: probe_env(SLURM_PROCID=str(rank), SLURM_LOCALID=str(rank), **common), tmp_path, script(MEET), "slurm")
    assert runs.only().name == "slurm-7.0"
    assert runs.kinds() == ["rank00000", "rank00001"]


def test_tools_below_a_rank_leave_nothing(torchrun, script, probe_env, runs):
    """pip, and a Python that imports torch and loads a file, started by a rank, leave no file of their own."""
    text = """
import subprocess, sys, torch
torch.save({}, sys.argv[1] + "/x%d.pt" % __import__("os").getpid())
subprocess.run([sys.executable, "-m", "pip", "--version"], check=True, stdout=subprocess.DEVNULL)
subprocess.run([sys.executable, "-c", "import torch, io; b = io.BytesIO(); torch.save({}, b)"], check=True)
"""
    path = script(text)
    done = torchrun(path, args=[path.parent], env=probe_env())
    assert done.returncode == 0, done.stderr
    assert runs.kinds() == ["launcher", "rank00000", "rank00001"]


def test_a_launcher_that_only_prints_help_leaves_nothing(run_python, probe_env, runs):
    """torchrun --help makes no folder."""
    done = run_python(["-m", "torch.distributed.run", "--help"], env=probe_env())
    assert done.returncode == 0
    assert runs.folders() == []


def test_a_program_that_no_probe_sees_leaves_nothing(run_python, probe_env, runs):
    """A program that imports torch and does nothing that is watched makes no folder."""
    done = run_python("import torch; print(torch.zeros(1).item())", env=probe_env())
    assert done.stdout == "0.0\n"
    assert runs.folders() == []


def test_a_program_of_its_own_is_rank_0_of_1(run_python, probe_env, runs, read_events, tmp_path):
    """Without a launcher the first thing that a probe sees opens a file, which says that there was no launcher."""
    done = run_python("import torch; torch.save({}, 'x.pt'); torch.load('x.pt')", env=probe_env(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    events = read_events(runs.only())
    assert (events[0]["event"], events[0]["role"], events[0]["launcher"], events[0]["rank"]) == ("process.start", "solo", "none", 0)
    assert [event["event"] for event in events if event["event"].startswith("checkpoint")] == ["checkpoint.save"] * 2 + ["checkpoint.load"] * 2


def test_latest_points_at_the_newest_run(run_python, probe_env, runs, tmp_path):
    """Beside the runs lies a pointer to the newest one."""
    for _ in range(2):
        run_python("import torch; torch.save({}, 'x.pt')", env=probe_env(), cwd=tmp_path)
    newest = max(runs.folders(), key=lambda path: path.stat().st_mtime_ns)
    assert os.readlink(str(runs.root / "latest")) == newest.name


FORKED = """
import os, torch
import ddp_probe
ddp_probe.activate()
for _ in range(150):
    torch.save(1, "x.pt")
child = os.fork()
if not child:
    ddp_probe.activate()
    torch.load("x.pt")
    raise SystemExit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_fork_that_arms_itself(run_python, clean_env, tmp_path, read_events):
    """activate() in the child of a fork gives it a file of its own, which counts the child's calls alone."""
    done = run_python(FORKED, env=clean_env(DDP_PROBE_DIR=str(tmp_path / "runs")), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    files = [read_events(path) for path in (tmp_path / "runs").rglob("rank*.jsonl") if not path.parent.is_symlink()]
    (child,) = [events for events in files if any(event["event"] == "checkpoint.load" for event in events)]
    assert len(files) == 2
    assert not [event for event in child if event["event"] == "checkpoint.save"]
    (coverage,) = [event for event in child if event["event"] == "probe.coverage"]
    calls = {target["target"]: target.get("calls", 0) for target in coverage["targets"]}
    assert (calls["torch.serialization.load"], calls["torch.serialization.save"]) == (1, 0)
