"""torch.load and torch.save of files in every state: what the file was, asked before the load, and how the load ended."""

import pytest
import torch
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


@pytest.fixture(scope="module")
def others(alone):
    """What else writes and reads checkpoints, under the probe."""
    run = alone("writers.py")
    assert run.done.returncode == 0, run.done.stderr
    return run


def _spans(run, event):
    """Return begin and end or error of each call, by who writes or reads and by path."""
    events = run.events("rank00000", event)
    ends = {each["span"]: each for each in events if each["phase"] != "begin"}
    begins = [each for each in events if each["phase"] == "begin"]
    return {(each.get("by", "").rpartition(".")[2], each.get("path") or each["file"]["path"]): (each, ends[each["span"]]) for each in begins}


def test_other_writers(others):
    """mmengine's backend and safetensors are recorded with path, size, time and inode; a file that is no checkpoint is not."""
    saves = _spans(others, "checkpoint.save")
    assert not [path for _, path in saves if path == "note.txt"]
    begin, end = saves["put", "of_mmengine.pth"]
    assert (begin["existed"], end["in_place"], end["size"] > 64 * 64 * 4) == (False, True, True)
    assert begin["site"]["line"] == line_of("writers.py", 'save_checkpoint(STATE, "of_mmengine.pth")')
    assert {"size", "mtime", "inode"} <= set(end)
    begin, end = saves["save_file", "of.safetensors"]
    assert (begin["existed"], begin["size"], begin["inode"] == end["inode"]) == (True, end["size"], end["in_place"])


def test_other_readers(others):
    """A file of safetensors is recorded as such, also one that is cut; its failure is that of the load."""
    loads = _spans(others, "checkpoint.load")
    assert loads["load_file", "of.safetensors"][1]["file"]["kind"] == "safetensors"
    begin, after = loads["load_file", "cut.safetensors"]
    assert (begin["file"]["size"], after["phase"], after["failure"]["type"].rpartition(".")[2]) == (100, "error", "SafetensorError")


def test_folders_of_torch(others):
    """Distributed checkpoints are recorded by their folder, whether it is named or hidden in a reader or a writer."""
    saves, loads = _spans(others, "checkpoint.save"), _spans(others, "checkpoint.load")
    if torch.__version__.startswith("1."):
        assert not [by for by, _ in saves if by in ("save", "async_save")]
        return
    assert saves["save", "of_dcp"][1]["phase"] == "end"
    assert loads["load", "of_dcp"][0]["file"]["kind"] == "directory"
    assert saves["async_save", "of_async"][1]["phase"] == "end"
