"""Jobs that hang without the probe: looks from outside name the guilty rank and its line, or say why they cannot."""

import json
import os
import shlex
import time
from pathlib import Path

import pytest
from namespaces import MASTER, network
from unarmed import HANGS, Hang, Running, stack, start

from ddp_probe.attaching import py_spy
from ddp_probe.reading import proc_files

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not py_spy.program(), reason="py-spy is not installed.")]


def _attach(run_python, folder, pid, *words):
    env = {"DDP_PROBE_DIR": str(folder / "runs")}
    done = run_python(["-m", "ddp_probe", "attach", str(pid), *words], env=env, cwd=folder, timeout=120)
    if "may look into a process" in done.stderr + done.stdout or "CAP_SYS_PTRACE" in done.stderr + done.stdout:
        pytest.skip("This host does not let one process look into another.")
    return done


@pytest.fixture
def environment(clean_env):
    """The environment of a job without the probe, with the programs of this interpreter first on PATH."""
    return clean_env(PATH=os.path.dirname(os.path.abspath(py_spy.program())) + os.pathsep + os.environ["PATH"])


@pytest.mark.sample(2)
@pytest.mark.parametrize("hang", HANGS, ids=lambda hang: hang.id or hang.job)
def test_a_job_that_hangs_is_told(hang: Hang, environment, tmp_path: Path, run_python, free_port) -> None:
    """The finding names the ranks that stand apart and the line of the first of them; where stacks cannot tell, the reason is given."""
    if stack() not in hang.stacks:
        pytest.skip("This stack does not show it.")
    running = start(hang.id or hang.job, tmp_path, environment, free_port())
    try:
        members = running.settle(hang.job.startswith("10_"))
        done = _attach(run_python, tmp_path, members[0].pid, "--json")
    finally:
        running.kill()
    told = json.loads(done.stdout)
    if not hang.ranks:
        assert not told["findings"]
        assert hang.rule in [question["slug"] for question in told["undecided"]]
        return
    found = told["findings"][0]
    assert (found["slug"], tuple(found["ranks"])) == (hang.rule, hang.ranks)
    site = found["evidence"][0]["site"]
    source = Path(site["file"]).read_text(encoding="utf-8").splitlines()[site["line"] - 1]
    assert hang.line in source, source


# What rank 1 does while rank 0 waits for it; the word of its line; and whether it may come, so that it is no error.
_WAYS = {
    "starves": ("seen-waiting-for-data", "DataLoader", True),
    "disk": ("seen-in-file-system", "posix_spawn", True),
    "validates": ("seen-computing", "matmul", False),
    "compiles": ("seen-elsewhere", "subprocess.run", False),
    "writes": ("seen-elsewhere", "time.sleep", False),
    "polls": ("seen-elsewhere", "time.sleep", False),
    "accumulates": ("seen-computing", "", False),
    "debugs": ("seen-elsewhere", "", False),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("way", _WAYS)
def test_a_rank_that_may_come_is_no_error(way: str, environment, tmp_path: Path, run_python, free_port) -> None:
    """A rank that computes, compiles, writes, polls or is in a debugger is a warning with its line; one that starves or is in state D is an error."""
    slug, word, sure = _WAYS[way]
    program = Path(__file__).parent / "programs" / "one_way.py"
    command = "torchrun --nproc_per_node=2 --master_addr=127.0.0.1 --master_port=%d %s %s" % (free_port(), shlex.quote(str(program)), way)
    running = Running(command, tmp_path, {**environment, "OMP_NUM_THREADS": "1"}, 2)
    try:
        members = running.settle()
        for _ in range(6):  # The stack of a rank that runs may be torn each time that it is read.
            done = _attach(run_python, tmp_path, members[0].pid, "--json")
            found = json.loads(done.stdout)["findings"][0]
            if found["evidence"][0]["site"]:
                break
    finally:
        running.kill()
    assert (found["slug"], found["ranks"], found["severity"], done.returncode) == (slug, [1], "error" if sure else "warning", 1 if sure else 3), found
    line = program.read_text(encoding="utf-8").splitlines()[found["evidence"][0]["site"]["line"] - 1]
    assert word in line, line


def test_ranks_without_a_rank_in_their_environment_are_found(environment, tmp_path: Path, run_python, free_port) -> None:
    """The children of mp.spawn, whose environment names no rank, are ranks in the order of their start; one that sleeps is named with its line."""
    program = Path(__file__).parent / "programs" / "spawned.py"
    running = Running("python %s %d" % (shlex.quote(str(program)), free_port()), tmp_path, {**environment, "OMP_NUM_THREADS": "1"}, 2)
    try:
        running.settle()
        done = _attach(run_python, tmp_path, running.process.pid, "--json")
    finally:
        running.kill()
    told = json.loads(done.stdout)["findings"][0]
    assert (told["slug"], told["ranks"], done.returncode) == ("seen-elsewhere", [1], 1)
    assert "spawned.py:16" in told["verdict"]


def test_a_job_at_work_gives_no_alarm_and_does_not_notice(environment, tmp_path: Path, run_python, free_port, whole) -> None:
    """Looks at a job that trains name no rank, never say clear, stop nobody, and change neither its exit code nor what it prints."""
    program = Path(__file__).parent / "programs" / "trains.py"
    command = "torchrun --nproc_per_node=2 --master_addr=127.0.0.1 --master_port=%d %s" % (free_port(), shlex.quote(str(program)))
    looks = 50 if whole else 3
    quiet = _trained(command, environment, tmp_path / "quiet")
    folder = tmp_path / "watched"
    running = _train(command, environment, folder)
    try:
        members = running.settle_moving()
        for _ in range(looks):
            done = _attach(run_python, tmp_path, members[0].pid, "--json", "--within", "1")
            told = json.loads(done.stdout)
            assert (told["verdict"], told["findings"], done.returncode) == ("undecided", [], 3), told
            assert "none was stopped" in done.stderr
        (folder / "enough").touch()
        assert running.process.wait(timeout=120) == 0, running.log.read_text(encoding="utf-8", errors="replace")[-4000:]
    finally:
        running.kill()
    assert running.log.read_text(encoding="utf-8").split("loss", 1)[1][:40] == quiet.split("loss", 1)[1][:40]


def _train(command, env, folder):
    folder.mkdir()
    return Running(command, folder, {**env, "OMP_NUM_THREADS": "1"}, 2)


def _trained(command, env, folder) -> str:
    running = _train(command, env, folder)
    (folder / "enough").touch()
    try:
        assert running.process.wait(timeout=120) == 0, running.log.read_text(encoding="utf-8", errors="replace")[-4000:]
    finally:
        running.kill()
    return running.log.read_text(encoding="utf-8")


def test_native_names_the_c_function_and_leaves_nobody_stopped(environment, tmp_path: Path, run_python, free_port) -> None:
    """With --native the wait has the name of a C function, the pause is printed, and each rank runs on."""
    running = start("08_barrier_against_all_reduce", tmp_path, environment, free_port())
    try:
        members = running.settle()
        done = _attach(run_python, tmp_path, members[0].pid, "--native", "--within", "0.2", "--brief")
        states = [proc_files.stat(member.pid) for member in members]
    finally:
        running.kill()
    assert "for " in done.stderr
    assert " ms (median" in done.stderr
    assert {state.state for state in states if state} <= {"S", "R"}
    logs = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "runs").rglob("rank*.jsonl"))
    assert "gloo" in logs or "wait" in logs


_NEVER_IMPORTS = """
import time
time.sleep(600)
"""


def test_processes_that_never_import_torch_are_told_by_report_and_attach(armed, python, environment, tmp_path: Path, run_python, free_port) -> None:
    """Of a job with the probe whose ranks have not come to torch, `report` names the processes and their state, and `attach` the line."""
    (tmp_path / "late.py").write_text(_NEVER_IMPORTS)
    env = {**armed(tmp_path / "armed"), "PATH": environment["PATH"]}
    running = Running("torchrun --nproc_per_node=2 --master_addr=127.0.0.1 --master_port=%d late.py" % free_port(), tmp_path, env, 2)
    try:
        while len(running.members()) < 2 or not list((tmp_path / "armed").glob("[0-9]*/launcher*")):
            assert running.process.poll() is None, running.log.read_text()
            time.sleep(0.2)
        time.sleep(2.0)
        pids = [member.pid for member in running.members()]
        reported = json.loads(run_python(["-m", "ddp_probe", "report", "--json"], env={"DDP_PROBE_DIR": str(tmp_path / "armed")}).stdout)
        looked = json.loads(_attach(run_python, tmp_path, pids[0], "--json").stdout)
    finally:
        running.kill()
    (question,) = reported["undecided"]
    assert all("process %d is asleep" % pid in question["because"] for pid in pids), question
    assert "python -m ddp_probe attach %d" % pids[0] in question["next"]
    assert "late.py:3" in looked["undecided"][0]["because"]


_TRAINS = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
print("loss", flush=True)
while True: dist.all_reduce(torch.ones(100000))
"""


def test_a_network_that_is_cut_is_told_by_what_is_not_acknowledged(environment, tmp_path: Path, run_python) -> None:
    """If the link between two hosts is down while all ranks are in all_reduce, the bytes that nobody acknowledges are the finding."""
    net = network("ab")
    (tmp_path / "train.py").write_text(_TRAINS)
    own = {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": MASTER, "MASTER_PORT": "29500", "GLOO_SOCKET_IFNAME": "eth0"}
    hosts = [
        Running(
            "exec ip netns exec %s python train.py" % (net._mark + name),
            tmp_path,
            {**environment, **own, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
            1,
            tmp_path / ("log" + name),
        )
        for rank, name in enumerate("ab")
    ]
    try:
        for host in hosts:
            host.settle_moving()
        net.pull("b")
        for _ in range(5):
            found = json.loads(_attach(run_python, tmp_path, hosts[0].members()[0].pid, "--json").stdout)["findings"]
            if found:
                break
    finally:
        for host in hosts:
            host.kill()
        net.remove()
    assert (found[0]["slug"], found[0]["ranks"], found[0]["confidence"]) == ("seen-connection-stuck", [0, 1], "medium")
    assert "are not acknowledged by rank" in found[0]["verdict"]
