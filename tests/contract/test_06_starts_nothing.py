"""Promise 6: in a rank it starts no process, and one thread that watches for a hang, unless that is off; in a launcher one thread.

The child that a launcher starts once its ranks hang is met in tests/hangs: it reads, is waited for, and is not started in a rank.
"""

import ast

import pytest

_WATCHER = "thread"


def test_a_rank_has_the_threads_of_the_watcher_and_no_child_more(training):
    """At the end of training the threads of threading and the children of each rank are those without the probe; the kernel has one more at most."""
    for plain, probed in zip(training["plain"].facts, training["probed"].facts):
        for name in ("threads", "children"):
            assert probed[name] == plain[name], name
        assert plain["tasks"] <= probed["tasks"] <= plain["tasks"] + 1


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("off", "more"),
    [({}, [_WATCHER]), ({"DDP_PROBE_HANG_AFTER": "off"}, []), ({"DDP_PROBE_LEDGER": "off"}, [])],
    ids=["on", "unwatched", "no-ledger"],
)
def test_the_launch_starts_no_program(off, more, run_python, armed, free_port, tmp_path):
    """Each rank sees no fork and no exec, and one new thread, from the interpreter's start to its end; off, it sees none."""
    script = tmp_path / "audited.py"
    script.write_text(_AUDIT + _AUDITED)
    seen = []
    for root in (None, tmp_path / "runs"):
        place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        done = run_python([script], env=armed(root, **place, **off), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        seen.append(ast.literal_eval(done.stdout))
    assert seen[1] == sorted(seen[0] + more)
    assert list((tmp_path / "runs").rglob("rank00000.*.jsonl"))


def test_a_launcher_has_one_thread(run_python, armed, tmp_path):
    """A program that starts a rank by mp.spawn sees the forks and programs that it sees without the probe, and one new thread."""
    script = tmp_path / "launches.py"
    script.write_text(_AUDIT + _LAUNCHES)
    seen = []
    for root in (None, tmp_path / "runs"):
        done = run_python([script], env=armed(root), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        seen.append(ast.literal_eval(done.stdout))
    assert "os.fork" in seen[0]
    assert seen[1] == sorted([*seen[0], _WATCHER])
    assert list((tmp_path / "runs").rglob("launcher.*.jsonl"))


_AUDIT = """
import atexit, sys
seen = []
WATCHED = ("subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.system", "signal.pthread_kill")
sys.addaudithook(lambda event, args: seen.append(event) if event in WATCHED else None)

@atexit.register
def last():
    print(sorted(seen))

import threading
started = threading.Thread.start
threading.Thread.start = lambda self: (seen.append(type(self).__name__), started(self))[1]
import _thread
started_raw = _thread.start_new_thread
for holder in (_thread, sys.modules.get("ddp_probe.shared.threads")):  # The probe has taken it before, and its watchers take it from there.
    if holder is not None:
        holder.start_new_thread = lambda *given: (seen.append("thread"), started_raw(*given))[1]
"""
_AUDITED = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1).to("cpu"))
model(torch.ones(1, 1)).backward()
torch.save(model.state_dict(), "here.pth")
torch.load("here.pth")
dist.destroy_process_group()
"""
_LAUNCHES = """
import torch.multiprocessing
torch.multiprocessing.start_processes(lambda rank: None, nprocs=1, start_method="fork")
"""
