"""What the report says to change is proven by doing it: to the letter, on a job that fails, which then has to be well."""

import re
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from advice_table import FOUND_FALSE, NOT_FOLLOWED, ONE, OTHERS, Row
from follow import LogLine
from registry import stack

from ddp_probe.judging.judge import judge
from ddp_probe.judging.rule import ERROR
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.reading.load_run import load


@pytest.fixture
def place(request: pytest.FixtureRequest, row: Row, tmp_path: Path, armed: Callable[..., Dict[str, str]], free_port: Callable[[], int]) -> LogLine:
    """A job, ready to start."""
    if stack() not in row.stacks:
        pytest.skip("The other stack has this failure.")
    env = armed(tmp_path / "runs")
    if row.cards:
        env["PYTHONPATH"] += ":" + request.getfixturevalue("gcu_env")["PYTHONPATH"]
    return LogLine(row, tmp_path, env, free_port)


def _follow(place: LogLine, run_python: Callable[..., Any]) -> None:
    printed = ""
    for rule in place.row.rules:
        ended = place.start()
        assert [finding.id for finding in ended.diagnosis.findings][:1] == [rule], ended.output
        before = place.state()
        printed = place.follow(rule, run_python)
        assert place.state() != before, printed
    ended = place.start()
    assert ended.status == 0, printed + ended.output
    assert re.search(place.row.says, ended.output), ended.output
    assert [finding.verdict for finding in ended.diagnosis.findings if finding.severity == ERROR or finding.id in place.row.rules] == []


@pytest.mark.sample(3)
@pytest.mark.parametrize("row", FOUND_FALSE, ids=lambda row: row.name)
def test_what_was_false_once(row: Row, place: LogLine, run_python: Callable[..., Any]) -> None:
    """A job that fails, changed as the report says and in no other way, ends well."""
    _follow(place, run_python)


@pytest.mark.sample(2)
@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row.name)
def test_the_others(row: Row, place: LogLine, run_python: Callable[..., Any]) -> None:
    """A job that fails, changed as the report says and in no other way, ends well."""
    _follow(place, run_python)


def test_a_missing_plugin(armed: Callable[..., Dict[str, str]], free_port: Callable[[], int], gcu_env: Dict[str, str], tmp_path: Path) -> None:
    """A package that the interpreter lacks is not a library of LD_LIBRARY_PATH: the interpreter that has it runs the program."""
    place = LogLine(Row("", (), "plugin_missing", "", env=ONE), tmp_path, armed(tmp_path / "runs"), free_port)
    finding = place.start().diagnosis.findings[0]
    assert finding.id == "DDP211"
    assert "torch_gcu" in finding.remedy
    assert "LD_LIBRARY_PATH" not in finding.remedy
    place.env["PYTHONPATH"] += ":" + gcu_env["PYTHONPATH"]
    assert "8 cards" in place.start().output


def test_a_remedy_that_was_on_is_not_offered_again(tmp_path: Path) -> None:
    """What DDP_PROBE_FIX had on, and what did not help, is no advice."""
    text = """
{"event":"process.start","rank":0,"role":"rank","launcher":"mpi","environment":{"DDP_PROBE_FIX":"%s"}}
{"event":"process.end","rank":0,"uncaught":true,"exit_code":1,"failure":{"type":"KeyError","message":"'LOCAL_RANK'"}}
"""
    for fix, offered in (("auto", ""), ("rendezvous", ""), ("device-ids", "rendezvous")):
        file = tmp_path / "rank00000.node1.1.jsonl"
        file.write_text((text % fix).lstrip(), encoding="utf-8")
        assert [(finding.id, finding.fix) for finding in judge(load([str(file)])).findings] == [("DDP401", offered)]


def test_no_rule_is_forgotten() -> None:
    """Each rule has a job whose change is followed, or a reason why nobody can follow it here."""
    followed = {rule for row in (*FOUND_FALSE, *OTHERS) for rule in row.rules}
    told = followed | set(NOT_FOLLOWED)
    rules = {rule_of(module).id for module in modules()}
    assert sorted(rules - told) == [], "Write each of them in tests/advice/advice_table.py: a Row that follows its advice, or a line of NOT_FOLLOWED."
    assert sorted(told - rules) == [], "No rule has these ids. Take them out of tests/advice/advice_table.py."
    assert sorted(followed & set(NOT_FOLLOWED)) == [], "A Row follows each of these. Take its line out of NOT_FOLLOWED."
