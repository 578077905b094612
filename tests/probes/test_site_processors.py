"""Processors that a site adds to each line by the entry-point group ddp_probe.processors."""

_PROCESSORS = '''
def job(logger, method, line):
    """Adds the scheduler's job id, a secret, and tries to change the envelope."""
    line.update(job_id="4711", api_key="sk-not-for-logs-123456", rank=99, seq=77)
    return line

def broken(logger, method, line):
    raise ValueError("no scheduler here")

def quiet(logger, method, line):
    import structlog
    if line["event"] in ("checkpoint.load", "process.end"):
        raise structlog.DropEvent
    return line
'''
_CODE = """
import ddp_probe, os
ddp_probe.activate()
import torch
torch.save({"a": 1}, "x.pt")
assert torch.load("x.pt") == {"a": 1}
"""


def _events(run_python, clean_env, tmp_path, read_events, repo, names):
    info = tmp_path / "site-1.0.dist-info"
    info.mkdir()
    rows = "".join("%s = site_processors:%s\n" % (name, name) for name in names)
    (info / "entry_points.txt").write_text("[ddp_probe.processors]\n" + rows)
    (tmp_path / "site_processors.py").write_text(_PROCESSORS)
    path = "%s:%s" % (tmp_path, repo)
    env = clean_env(PYTHONPATH=path, DDP_PROBE_DIR=str(tmp_path / "runs"), RANK="0", WORLD_SIZE="1", DDP_PROBE_STRICT=None)
    done = run_python(_CODE, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == done.stderr == ""
    return read_events(tmp_path / "runs" / "latest")


def test_a_sites_fields_are_in_every_line(run_python, clean_env, tmp_path, read_events, repo):
    """A processor's field is in each line with secrets masked, and the envelope is what it was."""
    events = _events(run_python, clean_env, tmp_path, read_events, repo, ["job"])
    assert {event["job_id"] for event in events} == {"4711"}
    assert {event["api_key"] for event in events} == {"***"}
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert {event["rank"] for event in events} == {0}


def test_a_processor_that_raises_is_switched_off(run_python, clean_env, tmp_path, read_events, repo):
    """It is one fault in the log; the line on which it failed and all later lines are there, with what the others add."""
    events = _events(run_python, clean_env, tmp_path, read_events, repo, ["broken", "job"])
    faults = [event for event in events if event["event"] == "probe.fault"]
    assert [(fault["probe"], fault["failure"]["type"]) for fault in faults] == [("processor broken", "ValueError")]
    assert {"process.start", "checkpoint.save", "checkpoint.load", "process.end"} <= {event["event"] for event in events}
    assert [event["seq"] for event in events] == list(range(len(events)))


def test_a_processor_drops_lines(run_python, clean_env, tmp_path, read_events, repo):
    """structlog.DropEvent drops a line without a gap in the numbers, but not the lines that say how the process began and ended."""
    events = _events(run_python, clean_env, tmp_path, read_events, repo, ["quiet"])
    names = [event["event"] for event in events]
    assert "checkpoint.load" not in names
    assert (names[0], names[-1]) == ("process.start", "process.end")
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert events[-1]["lines"] == len(events) - 1
