"""What the launcher's own file says of its children."""

import pytest

JOB = """
import os, signal, sys, time, torch
while os.environ["RANK"] == "1" and sys.argv[1] != "fine" and not os.path.exists("rank0.pt"):
    time.sleep(0.01)  # Rank 0 must have a file of events before the launcher ends it.
if os.environ["RANK"] == "1" and sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if os.environ["RANK"] == "1" and sys.argv[1] == "exits":
    sys.exit(7)
torch.save({}, "rank%s.pt" % os.environ["RANK"])
time.sleep(60 if sys.argv[1] != "fine" else 0)
"""


@pytest.fixture
def launched(tmp_path, torchrun, armed, read_events):
    """Launch the job and return the launcher's events."""

    def launch(how):
        script = tmp_path / "job.py"
        script.write_text(JOB)
        done = torchrun(script, args=[how], env=armed(tmp_path / "runs"))
        events = read_events(next((tmp_path / "runs" / "latest").glob("launcher.*")))
        return done, events

    return launch


@pytest.mark.sample(1)
@pytest.mark.parametrize(("how", "code", "signal"), [("killed", -9, "SIGKILL"), ("exits", 7, None)])
def test_how_each_child_ended(launched, how, code, signal):
    """The first to fail is named with its exit code or signal, and its peers with the signal that the launcher sent."""
    done, events = launched(how)
    assert done.returncode == 1
    first = [event for event in events if event["event"] == "launcher.child" and event.get("first")]
    assert [(event["child_rank"], event["exit_code"], event.get("signal")) for event in first] == [(1, code, signal)]
    ended = {event["child_local_rank"]: event["exit_code"] for event in events if event["event"] == "launcher.child" and "child_rank" not in event}
    assert ended == {0: -15, 1: code}
    agent = next(event for event in events if event["event"] == "launcher.agent" and event["phase"] == "begin")
    assert (agent["nproc_per_node"], agent["nnodes"]) == (2, "1:1")
    assert agent["entrypoint"].endswith("job.py %s" % how)
    end = events[-1]
    assert (end["event"], end["uncaught"], end.get("silent_ranks", [])) == ("launcher.end", True, [])


def test_a_launch_that_goes_well(launched):
    """A launch that goes well ends without a failure."""
    done, events = launched("fine")
    assert done.returncode == 0, done.stderr
    assert {event["exit_code"] for event in events if event["event"] == "launcher.child"} == {0}
    assert "failure" not in events[-1]
    group = next(event for event in events if event["event"] == "launcher.group" and event["phase"] == "end")
    assert sorted(group["children"]) == ["0", "1"]
