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
    count = len(failures)  # By itself: a failed assertion prints what it looks at.
    assert count >= answered
    assert sum(case["group"] == group_of(cause) for case, cause in failures) == len(failures)
    assert sum(case["cause_key"] == cause for case, cause in failures) >= keys
    assert not [case["id"] for case, findings in found if not case["cause_key"] and any(one.cause != "own_exception" for one in findings)]


LOOKALIKES: List[Dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "collected" / "lookalikes.jsonl").read_text(encoding="utf-8").splitlines()
]


def test_look_alikes_are_not_taken_for_causes() -> None:
    """Of 56 failures beside warnings, survived failures and consequences of other causes, 50 are answered, 49 by their own cause and ranks."""
    found = [(case, judge(from_lines(case["error_text"])).findings) for case in LOOKALIKES]
    answered = [(case, findings[0]) for case, findings in found if findings and case["cause_key"]]
    wrong = [case["id"] for case, finding in answered if case["cause_key"] != finding.cause or (case["ranks"] or finding.ranks) != finding.ranks]
    assert wrong == ["L062"], "torch says it where a variable hides all cards: that is an answer too."
    assert len(answered) >= 50
    assert [case["id"] for case, findings in found if findings and not case["cause_key"]] == []


@pytest.mark.parametrize(
    ("file", "part", "answered", "groups", "keys", "alarms"),
    [
        ("pasted", "work", 89, 89, 84, 0),
        ("pasted", "work2", 24, 24, 23, 0),
        ("pasted", "opened", 88, 85, 77, 0),
        ("fresh", "work3", 40, 39, 33, 0),
        ("fresh", "opened3", 41, 40, 36, 0),
        ("blind", "work4", 34, 32, 24, 2),
        ("blind", "unseen4", 31, 29, 27, 1),
    ],
)
def test_pasted_failures_stay_answered(file: str, part: str, answered: int, groups: int, keys: int, alarms: int) -> None:
    """Of the failures as people pasted them as many are answered as before, with the right groups and keys; the unseen part is only counted."""
    lines = (Path(__file__).parent / "collected" / (file + ".jsonl")).read_text(encoding="utf-8").splitlines()
    found = [(case, judge(from_lines(case["error_text"])).findings) for case in map(json.loads, lines) if case["part"] == part]
    failures = [(case, findings[0].cause) for case, findings in found if case["cause_key"] and findings]
    count = len(failures)  # By itself: a failed assertion prints what it looks at.
    assert count >= answered
    assert sum(cause == case["cause_key"] or group_of(cause) == case["group"] for case, cause in failures) >= groups
    assert sum(case["cause_key"] == cause for case, cause in failures) >= keys
    assert sum(1 for case, findings in found if not case["cause_key"] and any(one.cause != "own_exception" for one in findings)) <= alarms
