"""A rule is known by its check or by its words alone; of the second kind the file is data."""

import ast
from pathlib import Path
from typing import Any

import pytest

from ddp_probe.judging.rule_problems import problems
from ddp_probe.judging.rules import modules, rule_of

DATA = [module for module in modules() if not hasattr(module, "check")]
CODE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.If, ast.For, ast.While, ast.Try, ast.ListComp, ast.GeneratorExp)


@pytest.mark.parametrize("module", DATA, ids=lambda module: rule_of(module).slug)
def test_a_rule_by_words_is_data(module: Any) -> None:
    """A rule without a check() has texts that decide, and no function, class or loop."""
    path = Path(module.__file__)
    code = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, CODE)]
    assert rule_of(module).printed
    assert not code, "%s:%d is code: write a check()." % (path.name, code[0].lineno)


@pytest.mark.parametrize("module", modules(), ids=lambda module: rule_of(module).slug)
def test_a_rule_has_no_problem(module: Any) -> None:
    """A rule of ours passes the check that one of a site passes: its words, patterns and verdicts."""
    assert list(problems(rule_of(module))) == []


def test_both_kinds_are_there() -> None:
    """Some rules are known by their words alone, and most have a check."""
    assert 10 < len(DATA) < len(modules()) / 2
