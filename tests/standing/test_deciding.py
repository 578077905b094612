"""Which statement took two ranks apart, in training code as people write it."""

import ast
import sys

import pytest
from snippets import Snippet, snippets

from ddp_probe.reading.job_source import JobFile
from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.standing.deciding import deciding
from ddp_probe.standing.source_trees import SourceTrees

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


SKIPS = SNIPPETS["a loss that is not finite skips backward"]


def test_source_that_has_changed() -> None:
    """Of source that is newer than the run nothing is said."""
    assert deciding(SKIPS.sources(when=0.5), SKIPS.ways["A"], SKIPS.ways["B"], SKIPS.ways["S"]) is None


@pytest.mark.parametrize("file", ["<ipython-input-3-abc>", "<string>", "", "gone.py"])
def test_no_source(file: str) -> None:
    """Of a cell of a notebook, of exec and of a file that is not here nothing is said."""
    ways = [tuple(site._replace(file=file) for site in SKIPS.ways[side]) for side in "ABS"]
    assert deciding(SKIPS.sources(), *ways) is None
    assert deciding(SourceTrees(2.0), *ways) is None


def test_names_of_the_condition() -> None:
    """The names of a condition are those whose values it asks for; what it calls and what the file imports is left out."""
    source = "import torch\ndef f(self, batch):\n    a()\n    if torch.isnan(self.loss) and batch.valid(self.best):\n        b()\n    c()\n"
    trees = SourceTrees(2.0, lambda path: JobFile(source, 1.0))
    answer = deciding(trees, *((LedgerSite("t.py", line, "f"),) for line in (5, 6, 3)))
    assert answer is not None
    assert [(each.text, each.names) for each in answer.statements] == [
        ("if torch.isnan(self.loss) and batch.valid(self.best)", ("self.loss", "batch", "self.best"))
    ]


HOSTILE = {
    "a function of very many statements": ("def f():\n    a()\n" + "    if x: g()\n" * 30_000 + "    b()\n    c()\n", True),
    "many functions": ("".join("def f%d():\n    a()\n    if x:\n        b()\n    c()\n" % number for number in range(500)), False),
    "a deep expression": ("def f():\n    a()\n    x = " + "g(p and " * 80 + "1" + ")" * 80 + "\n    b()\n", False),
    "a long sum": ("def f():\n    a()\n    x = " + "+".join(["g(y) if z else 1"] * 3000) + "\n    b()\n", False),
    "finally in finally": (
        "def f():\n"
        + "".join("    " * (depth + 1) + "try:\n" for depth in range(18))
        + "    " * 19
        + "return a()\n"
        + "".join("    " * (depth + 1) + "finally:\n" + "    " * (depth + 2) + "if q: b()\n" for depth in reversed(range(18))),
        False,
    ),
    "a zero": ("def f():\n\0", False),
    "no Python": ("def (:\n  b\n", False),
    "nothing": ("", False),
}


@pytest.mark.parametrize(("source", "is_left_out"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_source(source: str, is_left_out: bool) -> None:
    """Source that is too large, too deep or not Python neither raises nor is walked through for long."""
    trees = SourceTrees(2.0, lambda path: JobFile(source, 1.0))
    last = source.count("\n")
    for lines in ((last - 1, last, 2), (last, 3, 2), (-1, 10**9, 0)):
        answer = deciding(trees, *((LedgerSite("t.py", line, "f"),) for line in lines))
        assert answer is None or not is_left_out
