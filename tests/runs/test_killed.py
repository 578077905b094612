"""A rank that is killed by a signal inside DDP.__init__ leaves what it was about to do."""

import json

from run_pieces import PROGRAMS, line_of


def test_a_file_of_a_killed_rank_ends_with_the_begin_event(launch):
    """The last thing that the killed rank did is ddp.init begin, its last line is whole; the launcher's file names the signal."""
    run = launch("killed.py")
    assert run.done.returncode == 1
    data = run.file("rank00001").read_bytes()
    assert data.endswith(b"}\n")
    did = [event for event in map(json.loads, data.splitlines()) if event["event"] != "device.state"]  # Which comes by the clock.
    last = did[-1]
    assert (last["event"], last["phase"], last["rank"]) == ("ddp.init", "begin", 1)
    assert last["site"] == {"file": str(PROGRAMS / "killed.py"), "line": line_of("killed.py", "# killed"), "function": "<module>"}
    assert set(last["placement"]["devices"]) == {"cpu"}
    assert list(run.root.rglob("models/*.json"))
    children = run.events("launcher", "launcher.child")
    assert "SIGKILL" in [child.get("signal") for child in children if child.get("child_local_rank") == 1]
