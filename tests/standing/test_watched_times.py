"""From which time on ranks decided differently, by values that were written."""

import pytest

from ddp_probe.standing.watched_times import first_unlike, holds


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        ("value < best", True),
        ("not value < best", False),
        ("value < best < 10", True),
        ("self.done or value > best", False),
        ("step % 4 == 0 and value is not None", True),
        ("value - best > -loss", True),
        ("isfinite(value)", None),
        ("items", None),
        ("missing > 3", None),
        ("step / self.done", None),
    ],
)
def test_a_condition_on_plain_values_is_computed(condition: str, answer: object) -> None:
    """Comparisons, flags and arithmetic are told; what asks for a call, a length or a name that was not kept is not."""
    values = {"value": "3.5", "best": "7.0", "self.done": "False", "step": "8", "loss": "inf", "items": "len 3"}
    assert holds(condition, values) is answer


def test_the_first_time_is_that_at_which_the_condition_says_another_thing() -> None:
    """Ranks with other values that decide alike do not differ yet."""
    reached = {0: {1: {"value": "9.0"}, 2: {"value": "5.0"}}, 1: {1: {"value": "8.0"}, 2: {"value": "8.5"}}}
    unlike = first_unlike(reached, "value < 7")
    assert unlike is not None
    assert (unlike.times, unlike.says) == (2, {0: True, 1: False})


def test_without_a_condition_that_can_be_computed_the_values_count() -> None:
    """If the condition calls something, the first unlike values are told."""
    unlike = first_unlike({0: {1: {"n": "1"}, 2: {"n": "2"}}, 1: {1: {"n": "1"}, 2: {"n": "3"}}}, "check(n)")
    assert unlike is not None
    assert (unlike.times, unlike.says) == (2, {0: None, 1: None})


def test_ranks_that_decide_alike_do_not_differ() -> None:
    """Nothing is told if every time is alike, or if one rank alone has written."""
    assert first_unlike({0: {1: {"n": "1"}}, 1: {1: {"n": "2"}}}, "n > 0") is None
    assert first_unlike({0: {1: {"n": "1"}}}, "n > 1") is None
