"""The sums and the ring of steps of a real job: what they count, what they leave out, and that a reader finds them after SIGKILL."""

import json
from pathlib import Path
from typing import Any, Dict, Tuple

import pytest

from ddp_probe.reading import whole_ledger
from ddp_probe.shared.ledger_schema import SUMS

pytestmark = pytest.mark.slow
_PROGRAM = Path(__file__).parent / "programs" / "counted.py"


@pytest.fixture(scope="module")
def counted(tmp_path_factory: Any, armed: Any, run_python: Any) -> Tuple[whole_ledger.Ledger, Dict[str, Any]]:
    """The ledger of a job that was killed, and what it said it had called."""
    folder = tmp_path_factory.mktemp("counted")
    done = run_python([str(_PROGRAM)], env=armed(folder / "runs", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0"), cwd=folder, timeout=200)
    assert done.returncode == -9, done.stderr
    (path,) = {path.resolve() for path in (folder / "runs").glob("*/rank*.ledger")}
    return whole_ledger.read(path), json.loads(done.stdout)


def test_every_outermost_call_that_returned_is_counted(counted: Any) -> None:
    """Calls in loops, in threads and asynchronous ones are counted at their line; those inside others, refused, and in a forked child are not."""
    found, called = counted
    for name in ("all_reduce", "broadcast", "broadcast_object_list"):
        rows = [one for one in found.sums if one.op == name]
        assert [one.calls for one in rows] == [called[name]], name
        assert rows[0].site is not None
        assert rows[0].group == found.groups[0]


def test_times_of_the_sums_are_those_of_the_records(counted: Any) -> None:
    """The time inside, the longest and the sum of the times of entry are what the ring's records say of the same calls, waits included."""
    found, _ = counted
    for row in found.sums:
        records = [one for one in found.records if (one.op, one.site, one.state) == (row.op, row.site, "returned")]
        if not row.op:
            continue
        assert row.entered_ns == sum(one.entered_ns for one in records) % (1 << 64), row
        assert len(records) == row.calls
        inside = [one.left_ns - (one.waited_ns if one.is_async else one.entered_ns) for one in records]
        assert abs(row.inside_ns - sum(inside)) <= row.calls
        assert row.longest_ns == max(inside)


def test_lines_without_a_row_share_the_first(counted: Any) -> None:
    """Where more lines call than there are rows, the first row takes the rest, and no call is lost."""
    found, called = counted
    assert len(found.sums) <= SUMS
    (rest,) = [one for one in found.sums if not one.op]
    assert rest.calls > called["barrier"] - SUMS
    assert rest.calls + sum(one.calls for one in found.sums if one.op == "barrier") == called["barrier"]


def test_the_parts_of_a_step_add_up(counted: Any) -> None:
    """Each backward pass ends a step; its parts are within it, and the loader's part holds the time that a row takes."""
    found, called = counted
    steps = found.steps
    assert list(steps.numbers) == list(range(2, called["steps"] + 1))  # Nobody knows when the first began.
    for at, took in enumerate(steps.took):
        parts = {name: times[at] for name, times in steps.parts.items()}
        assert sum(parts.values()) <= took + len(parts)  # Microseconds, rounded.
        assert parts["dataloader"] >= called["nap"] * 1e6
        assert min(parts[name] for name in ("forward", "backward", "optimizer", "waiting")) > 0, parts
        assert parts["saving"] == parts["evaluating"] == 0
