"""The lines of collectives in a rank's log: what grep finds of barriers, slow calls and calls that raised."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

Event = Dict[str, Any]
_PROGRAM = Path(__file__).parent / "programs" / "barriers.py"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: Any, armed: Any) -> List[List[Event]]:
    """Return the lines of collectives of each of two ranks."""
    folder = tmp_path_factory.mktemp("b")
    env = armed(folder / "runs", DDP_PROBE_SLOW="0.4")
    launch = "-m torch.distributed.run --standalone --nproc_per_node=2".split()
    command = [sys.executable, *launch, str(_PROGRAM)]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    files = sorted((folder / "runs").glob("2*/rank*.jsonl"))
    assert len(files) == 2
    return [_collectives(file) for file in files]


def _collectives(file: Path) -> List[Event]:
    """Return the lines of collectives of a log without a fault of the probe."""
    events = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert "probe.fault" not in {event["event"] for event in events}
    return [event for event in events if event["event"] == "dist.collective"]


def _of_line(events: List[Event], text: str, nth: int = 1) -> List[Event]:
    """Return the lines of the calls that one line of the program makes."""
    source = _PROGRAM.read_text(encoding="utf-8").splitlines()
    at = [number for number, line in enumerate(source, 1) if text in line][nth - 1]
    return [event for event in events if event["site"]["line"] == at]


def test_barriers_are_written_before_and_after_and_then_sparsely(logs: List[List[Event]]) -> None:
    """Of 205 barriers of one line each rank writes the first hundred and the 200th."""
    for events in logs:
        barriers = _of_line(events, "dist.barrier()")
        assert [event["phase"] for event in barriers] == ["begin", "end"] * 101
        assert [event["number"] for event in barriers[::2]] == [*range(1, 101), 200]
        assert [event.get("nth") for event in barriers[::2]] == [None] * 100 + [200]
        for begin, end in zip(barriers[::2], barriers[1::2]):
            assert begin["span"] == end["span"]
            assert 0 < end["seconds"] < 60
            for event in (begin, end):
                assert (event["operation"], event["ranks"], event["size"]) == ("barrier", "0-1", 2)


def _begun(events: List[Event]) -> List[Any]:
    begun = [event for event in events if event["phase"] == "begin"]
    return [(each["operation"], each["number"], each.get("group")) for each in begun]


def test_the_numbers_and_groups_of_a_barrier_are_the_same_on_each_rank(logs: List[List[Event]]) -> None:
    """A barrier of another group counts anew, and its group has another id; monitored_barrier is one too."""
    assert _begun(logs[0]) == _begun(logs[1])
    (other,) = {(e["number"], e["group"]) for e in _of_line(logs[0], "dist.barrier(group=pair)")}
    assert other[0] == 1
    (monitored,) = {(e["number"], e["group"]) for e in _of_line(logs[0], "dist.monitored_barrier()")}
    assert monitored == (206, logs[0][0]["group"])
    assert other[1] != monitored[1]


def test_a_slow_call_and_a_slow_wait_have_one_line_each(logs: List[List[Event]]) -> None:
    """The rank that waited longer than DDP_PROBE_SLOW says so; one that came late does not."""
    for text, nth in (("dist.all_reduce(tensor)", 1), ("async_op=True", 1)):
        (slow,) = _of_line(logs[0], text, nth)
        assert (slow["phase"], slow["operation"], slow["ranks"]) == ("end", "all_reduce", "0-1")
        assert 0.4 < slow["seconds"] < 60
        assert "span" not in slow
        assert _of_line(logs[1], text, nth) == []
    assert _of_line(logs[0], "dist.all_reduce(tensor)", 2) == []


def test_calls_that_raised_are_written_few_times(logs: List[List[Event]]) -> None:
    """Of twenty failures of one line the first ten and the 16th are there; a barrier that raised has its begin."""
    for events in logs:
        raised = _of_line(events, "not a tensor")
        assert [event["phase"] for event in raised] == ["error"] * 11
        assert {event["failure"]["type"] for event in raised} <= {"TypeError", "RuntimeError"}
        assert raised[0]["failure"]["raised_at"]["line"] > 0
        refused = _of_line(events, "not a group")
        assert [event["phase"] for event in refused] in (["begin", "error"], ["begin", "end"])


def test_no_line_of_torch_stands_in_the_way(logs: List[List[Event]]) -> None:
    """What lies between the job's line and the call is libraries, not torch.distributed itself."""
    for events in logs:
        assert events
        assert not [event for event in events if event.get("through")]
