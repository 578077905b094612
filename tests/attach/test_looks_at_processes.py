"""Processes in each state that a look can meet: stopped, dead, ended meanwhile, started again, with many threads; and who may not look."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from ddp_probe.attaching import look, proc, py_spy, ranks
from ddp_probe.attaching.privileges import refusal
from ddp_probe.attaching.ranks import Job
from ddp_probe.judging.judge import judge
from ddp_probe.reading import proc_files
from ddp_probe.reading.load_run import load
from ddp_probe.shared.errors import UnusableError

_RANK = """
import sys, threading, time
for _ in range(int(sys.argv[1])): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print(flush=True)
while True: time.sleep(0.02)
"""


class Ranks:
    """Processes that have the environment of ranks, and no torch."""

    def __init__(self, env: Dict[str, str], count: int, threads: int = 0) -> None:
        self.port = str(random.randrange(1 << 16, 1 << 30))  # No port: it tells the job from those of other tests.
        self.processes = [self._start(env, rank, count, threads) for rank in range(count)]
        for process in self.processes:
            assert process.stdout is not None
            process.stdout.readline()

    def _start(self, env: Dict[str, str], rank: int, count: int, threads: int) -> "subprocess.Popen[str]":
        own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": self.port}
        return subprocess.Popen(
            [sys.executable, "-c", _RANK, str(threads)],
            env={**env, **{k: str(v) for k, v in own.items()}},
            stdout=subprocess.PIPE,
            universal_newlines=True,
        )

    def job(self) -> Job:
        """Return the job as attach finds it."""
        (found,) = ranks.find(next(one.pid for one in self.processes if one.poll() is None), False)
        return found

    def states(self) -> List[str]:
        """Return the states of all threads."""
        return [
            proc_files.text("%d/task/%s/stat" % (one.pid, thread)).rpartition(")")[2].split()[0]
            for one in self.processes
            for thread in os.listdir("/proc/%d/task" % one.pid)
        ]

    def end(self) -> None:
        """End all."""
        for process in self.processes:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@pytest.fixture
def start(clean_env) -> Iterator[Any]:
    """Start ranks; they end with the test."""
    started: List[Ranks] = []

    def make(count: int, threads: int = 0) -> Ranks:
        started.append(Ranks(clean_env(), count, threads))
        return started[-1]

    yield make
    for one in started:
        one.end()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDP_PROBE_DIR", str(tmp_path / "runs"))


def _look(job: Job, looks: int = 2) -> Any:
    return judge(load([look.look(job, looks=looks, apart=0.2, native=False, together=False).folder]))


def test_finds_the_ranks_by_their_environment(start) -> None:
    """Rank, number of ranks, launcher and address are those with which the processes were started."""
    found = start(3).job()
    assert [(one.rank, one.world_size, one.launcher) for one in found.members] == [
        (0, 3, "environment"),
        (1, 3, "environment"),
        (2, 3, "environment"),
    ]


def test_a_job_is_told_by_its_program_however_deep_its_interpreter_lies(start, tmp_path: Path, monkeypatch) -> None:
    """Where jobs are listed, a command names its interpreter without the folder, so that what it runs is not cut off."""
    folder = tmp_path / ("a folder with a long name " * 9)
    folder.mkdir()
    interpreter = folder / "python"
    interpreter.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    running = start(1)
    assert running.job().said.startswith("process %d: python -c \nimport sys" % running.processes[0].pid)


def test_a_worker_with_the_environment_of_its_rank_is_not_a_rank(start) -> None:
    """Of processes with one rank, the one above the others is the rank."""
    running = start(2)
    inside = proc_files.environ(running.processes[0].pid)
    program = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']).wait()"
    parent = subprocess.Popen([sys.executable, "-c", program], env={**(inside or {}), "MASTER_PORT": running.port + "1"})
    try:
        while not proc.children(parent.pid):
            time.sleep(0.05)
        child = proc.children(parent.pid)[0]
        (found,) = ranks.find(child, False)
        assert [one.pid for one in found.members if one.pid] == [parent.pid]
    finally:
        for pid in proc.children(parent.pid):
            os.kill(pid, signal.SIGKILL)
        parent.wait()


def test_a_stopped_rank_is_named_with_its_process(start) -> None:
    """A rank in state T is the finding, with the command that lets it go on; it is stopped afterwards as before."""
    running = start(2)
    stopped = running.processes[1].pid
    os.kill(stopped, signal.SIGSTOP)
    while (proc_files.stat(stopped) or proc_files.Stat(0, "", "", 0, 0, 0.0, 0.0, 0)).state != "T":
        time.sleep(0.01)
    diagnosis = _look(running.job())
    assert [(one.slug, one.ranks) for one in diagnosis.findings] == [("seen-not-running", [1])]
    assert "kill -CONT %d" % stopped in diagnosis.findings[0].remedy
    assert set(running.states()) == {"S", "T"}


def test_a_zombie_is_named(start) -> None:
    """A rank that has ended and whose parent has not waited for it is found among the children of the others' parent."""
    running = start(3)
    running.processes[2].kill()
    while (proc_files.stat(running.processes[2].pid) or proc_files.Stat(0, "", "Z", 0, 0, 0.0, 0.0, 0)).state != "Z":
        time.sleep(0.01)
    dead = proc_files.stat(running.processes[2].pid)
    ended = dead.ended if dead is not None else 0  # The kernel may not tell it to everybody.
    diagnosis = _look(running.job())
    assert [(one.slug, one.ranks) for one in diagnosis.findings] == [("seen-not-running", [2])]
    assert ("has ended by SIGKILL" if ended else "has ended") in diagnosis.findings[0].verdict
    assert os.geteuid() or ended == signal.SIGKILL


def test_one_that_ends_during_the_look_is_named(start) -> None:
    """A rank that was there when the ranks were looked for, and is not there any more, is gone."""
    running = start(2)
    job = running.job()
    running.processes[1].kill()
    running.processes[1].wait()
    diagnosis = _look(job)
    assert [(one.slug, one.ranks) for one in diagnosis.findings] == [("seen-not-running", [1])]
    assert "there is no process %d any more" % running.processes[1].pid in diagnosis.findings[0].verdict


def test_a_job_whose_only_rank_ends_is_not_clear(start) -> None:
    """If the only rank has ended when it is looked at again, how it ended is an open question, and the verdict is never clear."""
    running = start(1)
    (job,) = ranks.find(running.processes[0].pid, False)
    running.processes[0].kill()
    running.processes[0].wait()
    diagnosis = _look(job)
    assert (diagnosis.verdict, diagnosis.findings) == ("undecided", [])
    assert "how it ended is not seen" in diagnosis.undecided[0].because


def test_a_number_that_belongs_to_another_process_now_is_noticed(start) -> None:
    """A process that was started at another time than the rank is not the rank: its stacks are not read as those of the rank."""
    job = start(2).job()
    first, second = job.members
    diagnosis = _look(job._replace(members=[first, second._replace(born=second.born - 1)]))
    assert "is another one now" in diagnosis.findings[0].verdict
    assert diagnosis.findings[0].ranks == [1]


@pytest.mark.skipif(not py_spy.program(), reason="py-spy is not installed.")
def test_three_hundred_threads_are_read(start) -> None:
    """The main thread is told from 300 others, and each has its stack."""
    running = start(1, threads=300)
    read = py_spy.read(running.processes[0].pid, native=False)
    if read.allow:
        pytest.skip(read.problem)
    assert len(read.threads) == 301
    assert [thread.main for thread in read.threads].count(True) == 1
    assert read.threads[0].main


@pytest.mark.skipif(not py_spy.program(), reason="py-spy is not installed.")
@pytest.mark.parametrize("native", [False, True])
def test_whoever_kills_a_look_leaves_nobody_stopped(start, native: bool, whole: bool, tmp_path: Path) -> None:
    """SIGKILL at a random moment, to attach and everything below it, leaves each thread of each rank running."""
    running = start(2, threads=4)
    command = [sys.executable, "-m", "ddp_probe", "attach", str(running.processes[0].pid), "--within", "0.1", *(["--native"] if native else [])]
    env = {**os.environ, "DDP_PROBE_DIR": str(tmp_path / "runs")}
    began = time.monotonic()
    subprocess.run(command, check=False, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    took = time.monotonic() - began
    for _ in range(100 if whole else 3):
        child = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(took * random.random())
        for pid in [*_below(child.pid), child.pid]:
            os.kill(pid, signal.SIGKILL)
        child.wait()
        end = time.monotonic() + 10
        while set(running.states()) & {"T", "t"} and time.monotonic() < end:
            time.sleep(0.05)
        assert not set(running.states()) & {"T", "t"}


def _below(pid: int) -> List[int]:
    return [each for child in proc.children(pid) for each in (*_below(child), child)]


# Who may not look.

_SELF = os.getpid()


@pytest.mark.parametrize(
    ("uid", "owner", "privileges", "scope", "why", "allow"),
    [
        (1000, 1001, (0, False, False), "", "belongs to", "sudo "),
        (1000, 1000, (0, False, False), "1", "ptrace_scope is 1", "sudo sysctl kernel.yama.ptrace_scope=0"),
        (1000, 1000, (0, False, False), "2", "ptrace_scope is 2", "sudo "),
        (1000, 1000, (0, False, False), "3", "ptrace_scope is 3", "ptrace_scope=1"),
        (1000, 1000, (0, True, False), "1", "ptrace_scope is 1", "without no_new_privs"),
        (1000, 1001, (0, True, False), "0", "no_new_privs keeps", "on the host"),
        (0, 0, (0, False, True), "", "no CAP_SYS_PTRACE", "--cap-add SYS_PTRACE"),
        (0, 0, (1 << 19, False, True), "", "a seccomp filter", "seccomp=unconfined"),
        (1000, 1000, (0, False, False), "0", "protects process", "sudo "),
    ],
)
def test_says_why_it_may_not_look(monkeypatch, uid: int, owner: int, privileges: Any, scope: str, why: str, allow: str) -> None:
    """Each reason of the kernel has its sentence and the one command that would allow it."""
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(proc_files, "owner", lambda _: owner)
    monkeypatch.setattr(proc, "privileges", lambda: privileges)
    monkeypatch.setattr(proc_files, "text", lambda path: scope + "\n" if path.endswith("ptrace_scope") else "")
    said, command = refusal(_SELF)
    assert why in said
    assert allow in command


@pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists("/usr/bin/setpriv") or not py_spy.program(),
    reason="Only root can become another user, and py-spy asks for the right.",
)
@pytest.mark.parametrize("extra", [["--reuid=65534", "--regid=65534", "--clear-groups"], ["--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]])
def test_another_user_and_a_container_without_the_capability_are_told(start, extra: List[str], tmp_path: Path, repo: Path) -> None:
    """As another user nothing can be read; as root without CAP_SYS_PTRACE neither, if the process has it: the reason and the command are said."""
    running = start(2)
    os.chmod(str(tmp_path), 0o777)
    command = ["setpriv", *extra, sys.executable, "-m", "ddp_probe", "attach", str(running.processes[0].pid), "--within", "0.1", "--json"]
    env = {**os.environ, "DDP_PROBE_DIR": str(tmp_path / "runs"), "PYTHONPATH": str(repo)}
    done = subprocess.run(command, check=False, env=env, capture_output=True, text=True, cwd="/")
    if not done.stdout and "what to do:" not in done.stderr:
        pytest.skip("This interpreter does not run as the other user.")
    told = done.stdout + done.stderr
    assert "belongs to" in told or "CAP_SYS_PTRACE" in told, told
    assert "sudo " in told or "--cap-add SYS_PTRACE" in told
    assert done.returncode in (2, 3)


def test_a_process_of_no_job_is_told() -> None:
    """A process without a rank is of no job, and the answer names the variables that were looked for."""
    alone = subprocess.Popen(["sleep", "60"])
    try:
        with pytest.raises(UnusableError) as raised:
            ranks.find(alone.pid, False)
    finally:
        alone.kill()
        alone.wait()
    assert "RANK" in raised.value.why


def test_without_py_spy_states_are_told_and_stacks_are_asked_for(start, monkeypatch) -> None:
    """/proc alone tells who runs; for stacks the answer names the extra to install."""
    monkeypatch.setattr(py_spy, "program", lambda: "")
    diagnosis = _look(start(2).job())
    assert (diagnosis.verdict, diagnosis.findings) == ("undecided", [])
    assert any("ddp-probe[attach]" in question.next for question in diagnosis.undecided)


def test_what_is_written_holds_no_secret(start, clean_env, tmp_path: Path) -> None:
    """Of the environment only named variables are written, and a command line is masked."""
    running = Ranks({**clean_env(), "API_TOKEN": "hunter2hunter2"}, 1)
    try:
        folder = look.look(running.job(), looks=2, apart=0.1, native=False, together=False).folder
    finally:
        running.end()
    lines = [json.loads(line) for path in Path(folder).iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
    assert "hunter2" not in json.dumps(lines)
    assert [line["event"] for line in lines] == ["process.start", "process.look", "process.look"]
    assert {oct(path.stat().st_mode & 0o777) for path in Path(folder).iterdir()} == {"0o600"}


# A command for which these processes are the only ones of this host: other tests run jobs at any time.
_ONLY = """
import sys
from ddp_probe.reading import proc_files
from ddp_probe.cli import main
seen = list(map(int, sys.argv[1].split(",")))
proc_files.pids = lambda: seen
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(("command", "says"), [("watch", "undecided"), ("stacks", "rank 0")])
def test_watch_and_stacks_look_from_outside_if_there_is_no_run(start, command: str, says: str, tmp_path: Path, clean_env) -> None:
    """Without any run they say that they look from outside, and show what that gives."""
    if not py_spy.program() or py_spy.read(os.getpid(), native=False).allow:
        pytest.skip("Stacks cannot be read on this host.")
    words = [sys.executable, "-c", _ONLY, ",".join(str(one.pid) for one in start(1).processes), command]
    done = subprocess.run(words, check=False, env=clean_env(DDP_PROBE_DIR=str(tmp_path / "runs")), capture_output=True, text=True, cwd=str(tmp_path))
    assert "looked at from outside" in done.stderr
    assert says in done.stdout


def test_of_several_jobs_one_has_to_be_named(start, tmp_path: Path, clean_env) -> None:
    """Without a run and with two jobs, `watch` names the jobs, their processes and the command that looks at all."""
    first, second = start(1), start(2)
    both = ",".join(str(one.pid) for one in (*first.processes, *second.processes))
    words = [sys.executable, "-c", _ONLY, both, "watch"]
    done = subprocess.run(words, check=False, env=clean_env(DDP_PROBE_DIR=str(tmp_path / "runs")), capture_output=True, text=True, cwd=str(tmp_path))
    assert "2 jobs run on this host" in done.stderr
    assert "attach --all" in done.stderr
    assert str(first.processes[0].pid) in done.stderr
    assert str(second.processes[0].pid) in done.stderr


def test_a_run_that_is_there_is_shown_and_nobody_is_looked_at(start, tmp_path: Path, repo: Path, clean_env) -> None:
    """With a run, `stacks` stays with the run."""
    start(1)
    recorded = repo / "tests" / "attach" / "recorded"
    words = [sys.executable, "-m", "ddp_probe", "stacks"]
    done = subprocess.run(words, check=False, env=clean_env(DDP_PROBE_DIR=str(recorded)), capture_output=True, text=True, cwd=str(tmp_path))
    assert "looked at from outside" not in done.stderr
    assert "Shards.__getitem__" in done.stdout


# What /proc tells.


def test_connections_tell_what_waits_on_which_side() -> None:
    """Bytes that the other side does not read, and a connection that is asked for and not answered, are seen at both ends."""
    server = socket.create_server(("127.0.0.1", 0), backlog=0)
    asks = [socket.socket() for _ in range(4)]
    for one in asks:
        one.setblocking(False)
        one.connect_ex(server.getsockname())
    with server, server.accept()[0] as other:
        first = next(one for one in asks if one.getsockname() == other.getpeername())
        first.send(b"x" * 1000)
        for _ in range(100):
            _, sockets, _ = proc.opened(os.getpid())
            if any(one.unread for one in sockets):
                break
            time.sleep(0.01)
        port = server.getsockname()[1]
        unread = [(one.port, one.peer, one.unread) for one in sockets if one.unread]
        assert (port, "127.0.0.1:%d" % first.getsockname()[1], 1000) in unread
        assert [one for one in sockets if one.asks and one.peer == "127.0.0.1:%d" % port]
    for one in asks:
        one.close()


@pytest.mark.parametrize("version", [1, 2])
def test_a_control_group_with_a_limit_is_read(version: int, tmp_path: Path, monkeypatch) -> None:
    """What the kernel cannot take back, the limit and the processes killed are read in both versions of control groups, at a container's top too."""
    names = [proc._GROUP_V1, proc._GROUP][version - 1]
    texts = ["900\n", "1000\n", "oom_kill 2\n"]
    for name, text in zip(names, texts):
        (tmp_path / name[1:]).write_text(text)
    (tmp_path / "memory.stat").write_text("total_rss 700\ntotal_shmem 50\n" if version == 1 else "anon 700\nshmem 50\nfile 9\n")
    monkeypatch.setattr(proc, "_TOP_V1" if version == 1 else "_TOP", str(tmp_path))
    monkeypatch.setattr(proc, "text", lambda path: "4:memory:/job\n" if version == 1 else "0::/job\n")
    found = proc.system(os.getpid())
    assert (found.memory, found.memory_limit, found.memory_taken, found.oom_kills) == (900, 1000, 750, 2)


_STARTS_ANOTHER = """
import os, subprocess, sys, time
if "LOCAL_RANK" not in os.environ:
    subprocess.Popen([sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:]], env={**os.environ, "LOCAL_RANK": "1", "WORLD_SIZE": "2"})
print(flush=True)
time.sleep(600)
"""


def test_the_first_rank_of_lightning_is_the_program_that_has_started_the_others(tmp_path: Path, clean_env, monkeypatch) -> None:
    """A program whose children have a local rank and its own command is local rank 0, as Lightning starts them; its environment names none."""
    monkeypatch.setattr(proc_files, "has_loaded", lambda *_: True)
    program = tmp_path / "fit.py"
    program.write_text(_STARTS_ANOTHER)
    env = clean_env(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(random.randrange(1 << 16, 1 << 30)))
    first = subprocess.Popen([sys.executable, "fit.py", "x"], cwd=str(tmp_path), env=env, stdout=subprocess.PIPE, universal_newlines=True)
    try:
        while not any(str(program) in proc_files.argv(child) for child in proc.children(first.pid)):
            time.sleep(0.05)
        (found,) = ranks.find(first.pid, False)
        assert [(one.rank, one.pid == first.pid, one.world_size) for one in found.members] == [(0, True, 2), (1, False, 2)]
    finally:
        for pid in [*_below(first.pid), first.pid]:
            os.kill(pid, signal.SIGKILL)
        first.wait()


def test_a_program_that_knows_the_number_of_its_host_alone_is_its_only_rank(clean_env, monkeypatch) -> None:
    """One process on each host, started with NODE_RANK and MASTER_ADDR as Lightning reads them, is the rank of that number."""
    monkeypatch.setattr(proc_files, "has_loaded", lambda *_: True)
    port = str(random.randrange(1 << 16, 1 << 30))
    hosts = [
        subprocess.Popen(
            [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"],
            env=clean_env(NODE_RANK=str(number), MASTER_ADDR="127.0.0.1", MASTER_PORT=port),
            stdout=subprocess.PIPE,
        )
        for number in range(2)
    ]
    try:
        for host in hosts:
            assert host.stdout is not None
            host.stdout.readline()
        (found,) = ranks.find(hosts[1].pid, False)
        assert [(one.rank, one.pid) for one in found.members] == [(0, hosts[0].pid), (1, hosts[1].pid)]
    finally:
        for host in hosts:
            host.kill()
            host.wait()
            assert host.stdout is not None
            host.stdout.close()


def test_who_is_gone_while_nobody_waits_is_a_warning(start) -> None:
    """A rank that is gone while no other waits for it may have come to its end, or not begun: the place of the others is said in a warning."""
    running = start(2)
    job = running.job()
    running.processes[1].kill()
    running.processes[1].wait()
    (finding,) = _look(job).findings
    assert (finding.slug, finding.ranks, finding.severity) == ("seen-not-running", [1], "warning")


_STARTS_ENDING = """
import subprocess, sys
code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(3000000))'])"
print(flush=True)
while True: subprocess.run([sys.executable, "-c", code])
"""


def test_processes_that_have_ended_between_looks_count(start, monkeypatch, tmp_path: Path) -> None:
    """CPU time of what a rank has started is counted also if that, or what it has started, has ended since: a compiler is short-lived."""
    monkeypatch.setitem(globals(), "_RANK", _STARTS_ENDING)
    log = next(Path(look.look(start(1).job(), looks=2, apart=1.5, native=False, together=False).folder).glob("rank*"))
    seen = [event["children_cpu"] for event in map(json.loads, log.read_text().splitlines()) if event["event"] == "process.look"]
    assert seen[1] > seen[0]


def test_status_names_a_job_that_runs_without_a_run(start, clean_env, tmp_path: Path, repo: Path) -> None:
    """Without a run here, `status` names the job that runs on this host and the command that looks at it; with one it says nothing of the kind."""
    (running,) = start(1).processes
    recorded = repo / "tests" / "attach" / "recorded"
    words = [sys.executable, "-c", _ONLY, str(running.pid), "status"]
    for folder, told in ((tmp_path / "none", True), (recorded, False)):
        done = subprocess.run(words, check=False, env=clean_env(DDP_PROBE_DIR=str(folder)), capture_output=True, text=True, cwd=str(tmp_path))
        assert ("python -m ddp_probe attach" in done.stdout) is told
    done = subprocess.run([*words, "--json"], check=False, env=clean_env(DDP_PROBE_DIR=str(tmp_path)), capture_output=True, text=True)
    assert ["process %d" % running.pid in said for said in json.loads(done.stdout)["unarmed"]] == [True]
