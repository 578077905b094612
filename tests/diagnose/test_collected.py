"""Failures from public threads, whose causes were settled there and written down before the first judgement: what the diagnosis reaches, it keeps."""

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from ddp_probe.judging.causes import group_of
from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import from_lines

CASES: List[Dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "collected" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
]
ANSWERED = 9  # All; five at first.


def test_causes_are_named() -> None:
    """As many failures as before are answered, each by its own cause."""
    failures = [case for case in CASES if case["cause_key"]]
    answers = [judge(from_lines(case["error_text"])).findings for case in failures]
    answered = [(case["id"], case["cause_key"], found[0].cause) for case, found in zip(failures, answers) if found]
    assert len(answered) >= ANSWERED
    assert [one for one in answered if group_of(one[1]) != group_of(one[2]) or one[1] != one[2]] == []


def test_ordinary_logs_have_no_cause() -> None:
    """Lines of trainings that go well are given no cause."""
    healthy = [case for case in CASES if not case["cause_key"]]
    assert [case["id"] for case in healthy if judge(from_lines(case["error_text"])).findings] == []
    assert len(healthy) == 3


FROZEN: List[Dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "collected" / "frozen.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize(("part", "answered", "keys"), [("work", 53, 50), ("unseen", 43, 40)])
def test_frozen_failures_stay_answered(part: str, answered: int, keys: int) -> None:
    """Of 53 failures in each part as many are answered as before, each in the right group, and no healthy log is."""
    cases = [case for case in FROZEN if case["part"] == part]
    found = [(case, judge(from_lines(case["error_text"])).findings) for case in cases]
    failures = [(case, findings[0].cause) for case, findings in found if case["cause_key"] and findings]
    assert len(failures) >= answered
    assert sum(case["group"] == group_of(cause) for case, cause in failures) == len(failures)
    assert sum(case["cause_key"] == cause for case, cause in failures) >= keys
    assert not [case["id"] for case, findings in found if not case["cause_key"] and any(one.cause != "own_exception" for one in findings)]
