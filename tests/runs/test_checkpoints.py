"""torch.load and torch.save of files in every state: what the file was, asked before the load, and how the load ended."""

import pytest
from run_pieces import PROGRAMS, line_of


@pytest.fixture(scope="module")
def run(alone):
    """The loads under the probe."""
    return alone("loads.py")


@pytest.fixture(scope="module")
def loads(run):
    """Begin and end or error of each load, by the file's name."""
    assert run.done.returncode == 0, run.done.stderr
    events = run.events("rank00000", "checkpoint.load")
    begins = {event["span"]: event for event in events if event["phase"] == "begin"}
    return {begins[event["span"]]["file"]["path"]: (begins[event["span"]], event) for event in events if event["phase"] != "begin"}


def test_loads_end_as_without_the_probe(run, alone):
    """The program prints the same results and exceptions."""
    plain = alone("loads.py", probed=False)
    assert (plain.done.returncode, plain.done.stdout) == (run.done.returncode, run.done.stdout)
    assert plain.done.stdout.count("loaded") in (2, 3)


@pytest.mark.parametrize(
    ("name", "kind", "complete", "phase"),
    [
        ("complete", "zip", True, "end"),
        ("legacy", "legacy", None, "end"),
        ("truncated", "zip", False, "error"),
        ("empty", "empty", None, "error"),
        ("lfs", "git-lfs", None, "error"),
        ("html", "html", None, "error"),
    ],
)
def test_a_file_is_known_before_it_is_loaded(loads, name, kind, complete, phase):
    """The begin event tells the size, the last one the kind and whether the archive is whole; the load ends accordingly."""
    begin, after = loads[name + ".pth"]
    assert after["file"]["kind"] == kind
    assert after["file"].get("complete") is complete
    assert begin["file"]["exists"] is after["file"]["exists"] is True
    assert begin["file"]["inode"] == after["file"]["inode"]
    assert (begin["file"]["size"] == 0) == (name == "empty")
    assert (begin["map_location"], begin["site"]["file"]) == ("cpu", str(PROGRAMS / "loads.py"))
    assert begin["site"]["line"] == line_of("loads.py", "# loads")
    assert after["phase"] == phase
    assert ("failure" in after) == (phase == "error")
    assert after.get("locations", []) == (["cpu"] if phase == "end" else [])


def test_a_missing_file(loads):
    """A file that is not there is recorded as such."""
    begin, after = loads["missing.pth"]
    assert begin["file"]["exists"] is False
    assert after["failure"]["type"].endswith("FileNotFoundError")


def test_a_load_while_another_process_writes(loads):
    """If the file grows during the load, the begin event has the size of half of it and the last event that of the whole."""
    begin, after = loads["written.pth"]
    assert "file" not in after
    assert after["file_after"]["size"] > begin["file"]["size"]
    assert after["file_after"]["complete"] is True


def test_saves(run):
    """A save tells the path, the size, and that it was written in place where a file was there before."""
    begins = [event for event in run.events("rank00000", "checkpoint.save", "begin") if event["path"] == "complete.pth"]
    ends = [event for event in run.events("rank00000", "checkpoint.save", "end") if event["span"] in [each["span"] for each in begins]]
    assert [event["existed"] for event in begins] == [False, True]
    assert ends[1]["size"] < ends[0]["size"]
    assert ends[1]["in_place"] is True
