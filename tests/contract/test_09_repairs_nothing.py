"""Promise 9: it repairs nothing. Whatever fails without the probe fails with it, in the same way."""

import re

import pytest
from contract_pieces import PROGRAMS, WAYS


def _comparable(text):
    kept = [line for line in text.splitlines() if not line.startswith("ddp_probe: ")]
    return [re.sub(r"0x[0-9a-f]+", "0x", line) for line in kept]


@pytest.mark.sample(4, of="failing ways")
@pytest.mark.parametrize("way", WAYS)
def test_a_failing_job_ends_the_same_way(failures, way):
    """Exit code and printed traceback, line by line, are those of the run without the probe."""
    plain, probed = failures[way]["plain"], failures[way]["probed"]
    assert probed.code == plain.code
    assert _comparable(probed.err) == _comparable(plain.err)


@pytest.mark.sample(4, of="failing ways")
@pytest.mark.parametrize("way", WAYS)
def test_a_failing_job_leaves_a_file(failures, read_events, way):
    """Each of these runs leaves one file, which starts with process.start and holds no fault of the probe."""
    (path,) = failures[way]["probed"].runs.rglob("rank00000.*.jsonl")
    events = read_events(path)
    assert events[0]["event"] == "process.start"
    assert not [event for event in events if event["event"] == "probe.fault"]


def test_every_way_is_compared(run_program):
    """The ways that are compared are all that the program knows, and it fails in most of them."""
    done = run_program("failing", "names")
    assert tuple(done.stdout.split()) == WAYS
    assert (PROGRAMS / "failing.py").exists()


@pytest.mark.sample(4, of="failing ways")
@pytest.mark.parametrize("way", WAYS)
def test_a_way_does_fail(failures, way):
    """Without the probe each way ends with the code that its name says."""
    code = failures[way]["plain"].code
    if way == "interrupted":
        assert code not in (0, 1)
    else:
        assert code == {"leave": 7, "terminated": -15, "thread": 0}.get(way, 1)
