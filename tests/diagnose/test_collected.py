"""Failures from public threads, whose causes were settled there and written down before the first judgement: what the diagnosis reaches, it keeps."""

import json
from pathlib import Path
from typing import Any, Dict, List

from ddp_probe.diagnose import judge
from ddp_probe.diagnose.causes import group_of
from ddp_probe.read.load import from_lines

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
