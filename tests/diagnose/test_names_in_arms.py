"""Two arms of a decision that call one function with texts of their own: two names are added up."""

import json
import os
from pathlib import Path
from typing import Any, Dict, List

import pytest

from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.load_run import from_lines

CHOICE = """\
def worst():
    if %(test)s:
        mean(%(first)s)
    else:
        mean(%(second)s)


def mean(name):
    dist.%(op)s(values[name])
"""
FALLBACK = """\
def solve():
    try:
        with Phase(%(first)s):
            return quick()
    except RuntimeError:
        with Phase(%(second)s):
            return slow()


class Phase:
    def __exit__(self, kind, error, trace):
        dist.%(op)s(self.seconds)
"""


def _judge(tmp_path: Path, source: str, texts: str, op: str = "all_reduce", test: str = "a > b") -> Diagnosis:
    """Judge two ranks that ended well, each of which has taken an arm of its own, twice."""
    file = tmp_path / "train.py"
    first, second = texts.split()
    file.write_text(source % {"first": first, "second": second, "op": op, "test": test}, encoding="utf-8")
    os.utime(file, (500.0, 500.0))  # Before the run.
    events: List[Dict[str, Any]] = []
    for rank in range(2):
        events.append({"event": "process.start", "rank": rank, "world_size": 2, "role": "rank"})
        events.append({"event": "process.end", "rank": rank, "exit_code": 0})
    arms, inside = ((3, 5), "9:mean") if source is CHOICE else ((4, 7), "12:Phase.__exit__")
    calls = []
    for rank, line in enumerate(arms):
        way = "via '%s:%d:%s'" % (file, line, source.partition("(")[0][len("def ") :])
        calls.append("ledger %d %s 4 float32 at '%s:%s' %s x2" % (rank, op, file, inside, way))
    return judge(from_lines("\n".join([*map(json.dumps, events), *calls])))


@pytest.mark.parametrize("source", [CHOICE, FALLBACK])
def test_other_names_in_two_arms_are_told(tmp_path: Path, source: str) -> None:
    """What decided is named; of a `with`, its last line is known, where Python up to 3.9 leaves it."""
    (finding,) = _judge(tmp_path, source, "'age' 'price'").findings
    assert (finding.slug, finding.ranks) == ("calls-out-of-step", [0, 1] if source is CHOICE else [1])
    assert "Both lines call one function, each with a text of its own" in finding.verdict
    assert ("'if a > b'" if source is CHOICE else "'except RuntimeError'") in finding.verdict
    assert "2 calls have met from different lines" in finding.verdict


@pytest.mark.parametrize("source", [CHOICE, FALLBACK])
@pytest.mark.parametrize("texts", ["'age' 'age'", "age price", "'age' price", "0 1"])
def test_arms_without_names_of_their_own_are_clear(tmp_path: Path, source: str, texts: str) -> None:
    """One name, or a value that may be the same, is what two arms may well add up."""
    assert _judge(tmp_path, source, texts).verdict == "clear"


ONE_LINE = """\
def worst():
    return mean(%s) if a > b else mean(%s)


def mean(value):
    dist.all_reduce(value)
"""


@pytest.mark.parametrize(("texts", "verdict"), [("a b", "undecided"), ("a a", "clear"), ("a zero", "clear")])
def test_the_greater_of_two_is_asked_about(tmp_path: Path, texts: str, verdict: str) -> None:
    """If each arm of a line reduces one of the values that it compares, that may be meant: it is asked."""
    file = tmp_path / "train.py"
    file.write_text(ONE_LINE % tuple(texts.split()), encoding="utf-8")
    os.utime(file, (500.0, 500.0))  # Before the run.
    events: List[Dict[str, Any]] = []
    calls = []
    for rank in range(2):
        events.append({"event": "process.start", "rank": rank, "world_size": 2, "role": "rank"})
        events.append({"event": "process.end", "rank": rank, "exit_code": 0})
        way = "via '%s:2:worst#%d'" % (file, rank + 1)
        calls.append("ledger %d all_reduce 4 float32 at '%s:6:mean' %s x2" % (rank, file, way))
    diagnosis = judge(from_lines("\n".join([*map(json.dumps, events), *calls])))
    assert (diagnosis.verdict, diagnosis.findings) == (verdict, [])
    if verdict == "undecided":
        choice = "took the two arms of 'mean(a) if a > b else mean(b)' at %s:2 in worst" % file
        assert choice in diagnosis.undecided[0].because


def test_the_greater_of_two_may_stand_in_two_lines(tmp_path: Path) -> None:
    """The arms of an `if` that give one function the values that it compares are asked about, too."""
    diagnosis = _judge(tmp_path, CHOICE, "age price", test="age > price")
    assert (diagnosis.verdict, diagnosis.findings) == ("undecided", [])
    assert "took the two arms of 'if age > price'" in diagnosis.undecided[0].because


def test_roles_and_calls_that_add_nothing_up_are_clear(tmp_path: Path) -> None:
    """The arms of an `if` on the rank are roles, and gathered values stay apart."""
    assert _judge(tmp_path, CHOICE, "'main' 'worker'", test="rank == 0").verdict == "clear"
    assert _judge(tmp_path, CHOICE, "'age' 'price'", op="all_gather").verdict == "clear"
