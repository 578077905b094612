"""Two threads of a rank in collectives of one group at once: nothing orders their calls."""

from typing import Any, List

import pytest

from ddp_probe.reading.whole_ledger import Group, LedgerSite, Record
from ddp_probe.standing.thread_calls import calls_at_once

WORLD, OTHER = Group("a", 2, "0-1", 1), Group("b", 2, "0-1", 2)


def _call(number: int, entered: int, left: int, **others: Any) -> Record:
    """Return an all_reduce between two times, in a side thread unless something else is given."""
    kept = {"group": WORLD, "is_async": False, "is_inner": False, "in_side_thread": True, **others}
    return Record(
        number=number,
        op="all_reduce",
        seq=number,
        peer=-1,
        elements=1,
        tensors=1,
        dtype="float32",
        device="cpu",
        site=LedgerSite("train.py", 9),
        entered_ns=entered,
        waited_ns=0,
        left_ns=left,
        state="returned",
        outer=0,
        **kept,
    )


def test_a_call_that_begins_before_that_of_another_thread_ends_is_told() -> None:
    """Both calls are named, in the order in which they began, also if one of them is the main thread's."""
    records = [_call(1, 10, 20), _call(2, 30, 60), _call(3, 40, 50, in_side_thread=False)]
    calls = calls_at_once(records)
    assert calls is not None
    assert [call.number for call in calls] == [2, 3]


_APART = {
    "one after the other": [_call(1, 10, 20), _call(2, 20, 30), _call(3, 30, 40, in_side_thread=False)],
    "groups of their own": [_call(1, 10, 40), _call(2, 20, 30, group=OTHER)],
    "work that is given back": [_call(1, 10, 40, is_async=True), _call(2, 20, 30)],
    "a call within a call": [_call(1, 10, 40), _call(2, 20, 30, is_inner=True)],
    "the main thread alone": [_call(1, 10, 40, in_side_thread=False), _call(2, 20, 30, in_side_thread=False)],
}


@pytest.mark.parametrize("name", list(_APART))
def test_calls_that_something_may_order_are_left_alone(name: str) -> None:
    """Calls one after the other, of different groups, or of one thread are in an order of the job."""
    records: List[Record] = _APART[name]
    assert calls_at_once(records) is None
