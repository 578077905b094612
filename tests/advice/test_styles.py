"""The change that a rule names fits programs that are written in other ways than those it was made for, or there is no diff."""

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest
from style_table import STYLES, Style

from ddp_probe.judging import examples
from ddp_probe.judging.change import EXACT, NAMED, Import
from ddp_probe.judging.judge import judge
from ddp_probe.judging.rule import Finding
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.reading.load_run import from_lines
from ddp_probe.showing.own_change import applied, diff

_RULES = {rule_of(module).id: module for module in modules()}


def _found(log: str, rule: str) -> Finding:
    return next(finding for finding in judge(from_lines(log.strip())).findings if finding.id == rule)


def _moved(node: Any, was: Dict[str, Any], now: Dict[str, Any]) -> Any:
    """Return the events with one line of the job in place of another."""
    if isinstance(node, dict):
        own = {**node, **now} if {key: node.get(key) for key in was} == was else node
        return {key: _moved(value, was, now) for key, value in own.items()}
    return [_moved(value, was, now) for value in node] if isinstance(node, list) else node


def _of_the_program(style: Style, file: Path) -> Finding:
    """Return what the rule says of its example, as if its call were at the line of this program."""
    log = examples.of(_RULES[style.rule].RULE.slug)[style.example].log
    site = next(edit.site for edit in _found(log, style.rule).edits if isinstance(edit, (*NAMED, Import)) and edit.site is not None)
    was, now = {"file": site.file, "line": site.line}, {"file": str(file), "line": style.line}
    lines = [json.dumps(_moved(json.loads(line), was, now)) if line.startswith("{") else line for line in log.strip().splitlines()]
    return _found("\n".join(lines), style.rule)


def _change(style: Style, file: Path) -> List[str]:
    file.write_text(style.before, encoding="utf-8")
    return diff(_of_the_program(style, file))


@pytest.mark.parametrize("style", STYLES, ids=lambda style: "%s %s" % (style.rule, style.name))
def test_the_change_fits_another_style(style: Style, tmp_path: Path) -> None:
    """The diff turns the program into the one that was written by hand; where no exact change can be made, there is none, and the words remain."""
    file = tmp_path / "train.py"
    lines = _change(style, file)
    assert bool(lines) == bool(style.after), lines
    finding = _of_the_program(style, file)
    if style.after:
        after = applied(style.before.splitlines(), [edit for edit in finding.edits if isinstance(edit, (*NAMED, *EXACT, Import))])
        assert "\n".join(after or []) + "\n" == style.after
        compile(style.after, "train.py", "exec")
    assert len(finding.remedy) > 20
