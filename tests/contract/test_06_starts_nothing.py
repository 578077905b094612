"""Promise 6: it starts no process and no thread in a rank."""


def test_a_rank_has_no_thread_and_no_child_more(training):
    """At the end of training the threads, the kernel's tasks and the children of each rank are those of the run without the probe."""
    for plain, probed in zip(training["plain"].facts, training["probed"].facts):
        for name in ("threads", "tasks", "children"):
            assert probed[name] == plain[name], name


def test_the_launch_starts_no_program(run_python, armed, free_port, tmp_path):
    """An audit hook in each rank sees no fork, no exec and no new thread between the start of the interpreter and its end."""
    script = tmp_path / "audited.py"
    script.write_text(_AUDITED)
    place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    seen = []
    for root in (None, tmp_path / "runs"):
        done = run_python([script], env=armed(root, **place), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        seen.append(done.stdout)
    assert seen[0] == seen[1]
    assert list((tmp_path / "runs").rglob("rank00000.*.jsonl"))


_AUDITED = """
import atexit, sys
seen = []
WATCHED = ("subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.system", "_thread.start_new_thread", "signal.pthread_kill")
sys.addaudithook(lambda event, args: seen.append(event) if event in WATCHED else None)

@atexit.register
def last():
    print(sorted(seen))

import threading
started = threading.Thread.start
threading.Thread.start = lambda self: (seen.append(type(self).__name__), started(self))[1]
import torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1).to("cpu"))
model(torch.ones(1, 1)).backward()
torch.save(model.state_dict(), "here.pth")
torch.load("here.pth")
dist.destroy_process_group()
"""
