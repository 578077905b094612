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
    coverage = [event for event in read_events(tmp_path / "runs" / "latest") if event["event"] == "probe.coverage"]
    assert next(event["calls"] for event in coverage if event["target"] == "torch.serialization.load") == 401
