"""The brief form is one line per finding, or one line that says clear, or undecided because."""

from dataclasses import replace
from typing import Callable

import pytest

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.showing import brief_form


def test_a_finding_is_one_line(made: Diagnosis) -> None:
    """Id, name, ranks and verdict are on one line."""
    assert brief_form.lines(made) == ["DDP104 submodule-left-behind [ranks 0-1]: " + made.findings[0].verdict]


def test_clear_is_one_line(recorded: Callable[[str], Diagnosis]) -> None:
    """A healthy job is clear."""
    assert brief_form.lines(recorded("00_healthy_ddp")) == ["clear: ranks 0-1 finished normally, and no rule found a problem."]


def test_undecided_is_one_line_with_its_reasons(told: Callable[[str], Diagnosis]) -> None:
    """The first reasons are printed, and the number of others."""
    log = '{"event":"process.start","rank":0,"world_size":3}\n{"event":"process.end","rank":0}'
    assert brief_form.lines(told(log)) == ["undecided because: Ranks 1-2 left no file, of 3 expected."]


def test_a_warning_says_so(made: Diagnosis) -> None:
    """A finding that is not an error shows its severity; one about the whole job names no ranks."""
    made.findings[0] = replace(made.findings[0], severity="warning", ranks=[])
    assert brief_form.lines(made)[0].startswith("DDP104 submodule-left-behind warning: ")


def test_no_text_of_a_log_makes_a_second_line(made: Diagnosis) -> None:
    """A verdict with line breaks and escapes stays one harmless line of bounded length."""
    made.findings[0] = replace(made.findings[0], verdict="a\nb\x1b[31m" + "x" * 10**5)
    (line,) = brief_form.lines(made)
    assert "\n" not in line
    assert "\x1b" not in line
    assert len(line) < 2 * brief_form.LONGEST


@pytest.mark.parametrize("letter", ["x", "\x1b", "模"])
@pytest.mark.parametrize("count", [1, 2, 3, 40])
def test_the_whole_form_is_bounded(made: Diagnosis, count: int, letter: str) -> None:
    """However many findings there are and however long they are, the form has at most 1500 characters and says how many lines it leaves out."""
    one = replace(made.findings[0], verdict=letter * 10**4)
    shown = brief_form.lines(made._replace(findings=[one] * count))
    assert sum(len(line) + 1 for line in shown) <= 1500
    more = count - len(shown) + 1
    assert len(shown) == count or shown[-1] == "And %d more: python -m ddp_probe report" % more
