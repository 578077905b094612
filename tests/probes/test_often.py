"""A line that makes the same call very often does not fill the log, and its failures are all there."""

CODE = """
import ddp_probe; ddp_probe.activate()
import torch
torch.save({"a": 1}, "x.pt")
names = ["x.pt"] * 400
names[350] = "missing.pt"
for name in names:
    try:
        torch.load(name)
    except FileNotFoundError:
        pass
torch.load("x.pt")
"""


def test_many_loads_from_one_line(run_python, clean_env, tmp_path, read_events):
    """Of 400 loads by one line the first hundred, the 200th, the 400th and the one that fails are recorded; another line starts anew."""
    done = run_python(CODE, env=clean_env(DDP_PROBE_DIR=str(tmp_path / "runs")), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    loads = [event for event in read_events(tmp_path / "runs" / "latest") if event["event"] == "checkpoint.load"]
    begins = [event for event in loads if event["phase"] == "begin"]
    assert [event.get("nth") for event in begins] == [None] * 100 + [200, 351, 400, None]
    failed = [event["span"] for event in loads if event["phase"] == "error"]
    assert failed == [event["span"] for event in begins if event.get("nth") == 351]
    events = read_events(tmp_path / "runs" / "latest")
    (coverage,) = [event for event in events if event["event"] == "probe.coverage"]
    calls = {each["target"]: each.get("calls") for each in coverage["targets"]}
    assert calls["torch.serialization.load"] == 401


POLLING = """
import ddp_probe; ddp_probe.activate()
import torch
import torch.distributed as dist

def poll():
    try:
        torch.load("not-there-yet.pt")
    except FileNotFoundError:
        pass

for _ in range(20000):
    poll()
for number in range(1000):
    exec(compile("try:\\n    torch.load('nor-this.pt')\\nexcept FileNotFoundError:\\n    pass\\n", "<cell %d>" % number, "exec"), {"torch": torch})
dist.init_process_group("gloo", init_method="file://" + __import__("os").path.abspath("meet"), rank=0, world_size=1)
torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1), device_ids=[0])
"""


def test_failures_that_the_job_swallows_do_not_fill_the_file(run_python, clean_env, tmp_path, read_events):
    """Of 20 000 failed loads by one line, and of 1 000 by the cells of a notebook, few are recorded, the count is told, and the cause has room."""
    env = clean_env(DDP_PROBE_DIR=str(tmp_path / "runs"), DDP_PROBE_MAX_BYTES="700k")
    done = run_python(POLLING, env=env, cwd=tmp_path, timeout=120)
    assert done.returncode == 1, done.stderr
    events = read_events(tmp_path / "runs" / "latest")
    failed = [event for event in events if event["event"] == "checkpoint.load" and event["phase"] == "error"]
    assert 200 < len(failed) < 300
    assert max(event.get("nth", 0) for event in events if event["event"] == "checkpoint.load" and event["phase"] == "begin") > 10000
    assert [event["phase"] for event in events if event["event"] == "ddp.init"] == ["begin", "error"]
    assert events[-1]["event"] == "process.end"
    assert "device_ids" in events[-1]["failure"]["message"]
    assert "lost" not in events[-1]
