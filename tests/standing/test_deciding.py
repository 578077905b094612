"""Which statement took two ranks apart, in training code as people write it."""

import ast
import sys

import pytest
from snippets import Snippet, snippets

from ddp_probe.standing.deciding import deciding

SNIPPETS = snippets()


@pytest.mark.parametrize("snippet", SNIPPETS.values(), ids=SNIPPETS)
def test_the_statement_that_decided(snippet: Snippet) -> None:
    """What can have decided is named as it was frozen before the engine was asked, and nothing else is."""
    if "python" in snippet.asked and sys.version_info < tuple(map(int, snippet.asked["python"].split("."))):
        pytest.skip("this Python does not read the snippet")
    ast.parse(snippet.source)
    ways = snippet.ways
    answer = deciding(snippet.sources(), ways["A"], ways["B"], ways["S"])
    if snippet.verdict == "none":
        assert answer is None
        return
    assert answer is not None
    statements = answer.statements
    assert sorted(statement.line for statement in statements) == snippet.lines
    assert answer.is_sure == (snippet.verdict == "sure")
    first = statements[0]
    assert first.line == (snippet.first or first.line)
    shown = {"kind": first.kind, "hint": first.hint, "jump": first.jump, "taken": "%s,%s" % first.taken}
    asked = {name: value for name, value in snippet.asked.items() if name in shown}
    assert {name: shown[name] for name in asked} == asked
