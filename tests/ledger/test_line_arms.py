"""The arm of its line in which a call stands, by the bytecode of its function."""

import contextlib
import dis
import sys
from types import FrameType
from typing import Any, Callable, List, Tuple

import pytest

from ddp_probe.reading import ledger_text, whole_ledger
from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.traced.ledger.line_arms import LineArms

_ARMS = LineArms()


def _asked(_: Any = None) -> int:
    """Return the arm of the caller's line."""
    frame: FrameType = sys._getframe(1)
    return _ARMS.number(frame.f_code, frame.f_lasti)


def _chosen(first: Any, second: Any) -> int:
    return _asked(first) if first else _asked(second)


def _either(first: Any, second: Any) -> int:
    return _asked(1) if first or second else _asked(2)


def _in_lines(first: Any) -> int:
    if first:
        return _asked(1)
    return _asked(2)


def test_both_arms_of_one_line_have_numbers_of_their_own() -> None:
    """The first arm is 1, and so on in the order in which they stand; it is the same in every turn."""
    assert [_chosen(True, False), _chosen(False, True), _chosen(True, True)] == [1, 2, 1]
    numbers = [_either(True, False), _either(False, True), _either(False, False)]
    assert numbers[0] == numbers[1] < numbers[2]


def test_lines_without_arms_have_none() -> None:
    """The arms of an `if` that stand in lines of their own are known by these."""
    plain = _asked()
    assert [_in_lines(True), _in_lines(False), plain] == [0, 0, 0]


def _plain_and_conditional(first: bool, ask: Callable[[int], Tuple[int, int]]) -> List[Tuple[int, int]]:
    answers = [ask(0)]
    if first:
        answers.append(ask(1))
    answers.append(ask(2) if first else ask(3))
    return answers


def test_a_function_is_read_for_a_line_with_arms_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """To read the instructions of a long function takes milliseconds: a line without a condition spares them."""
    arms, real = LineArms(), dis.get_instructions
    codes: List[Any] = []

    def read(code: Any) -> Any:
        codes.append(code)
        return real(code)

    def ask(_: int) -> Tuple[int, int]:
        frame = sys._getframe(1)
        return arms.number(frame.f_code, frame.f_lasti), len(codes)

    monkeypatch.setattr(dis, "get_instructions", read)
    assert _plain_and_conditional(True, ask) == [(0, 0), (0, 0), (1, 1)]
    assert _plain_and_conditional(False, ask) == [(0, 1), (2, 1)]


def test_a_module_with_annotations_has_arms_too() -> None:
    """What sets up a module's annotations is no handler: the arms of its lines are found as in a function."""
    numbers: List[int] = []
    program = "size: int = 1\nnumbers.append(asked() if size else asked())\n"
    exec(compile(program, "annotated.py", "exec"), {"numbers": numbers, "asked": _asked})
    assert numbers == [1]


def test_bytecode_that_cannot_be_read_has_no_arms() -> None:
    """A program may make bytecode of its own: that is no fault."""
    code = _chosen.__code__.replace(co_names=())
    with pytest.raises(IndexError):
        list(dis.get_instructions(code))
    assert LineArms().number(code, 0) == 0


def _closed(numbers: List[int], fails: bool) -> None:
    try:
        if fails:
            raise ValueError
    finally:
        numbers.append(_asked(1) if fails is not None else _asked(2))


def test_a_suite_that_is_compiled_twice_has_one_number() -> None:
    """A `finally` is compiled for each way into it, and its lines have the same arms in all copies."""
    numbers: List[int] = []
    _closed(numbers, fails=False)
    with contextlib.suppress(ValueError):
        _closed(numbers, fails=True)
    assert numbers == [1, 1]


def test_the_arm_is_read_with_its_line() -> None:
    """The text of a line has its arm behind the function; one of before has none."""
    lines = ["ledger 0 all_reduce 4 float32 at /job/train.py:3:main%s" % arm for arm in ("#2", "")]
    (data,) = ledger_text.written(lines).values()
    sites = [record.site for record in whole_ledger.parse(data).records]
    assert sites == [LedgerSite("/job/train.py", 3, "main", 2), LedgerSite("/job/train.py", 3, "main")]
