"""No sentence about a run is finished in the code: it is a template with values, which a page can write in each language."""

import ast
import re
from pathlib import Path
from typing import Iterator, List, Tuple

import pytest

import ddp_probe

PACKAGE = Path(ddp_probe.__file__).parent
ROOMS = ("judging", "standing")
_SENTENCE = re.compile(r"[A-Za-z]{2,}[^%]* [a-z]{2,}")
_PATTERN = re.compile(r"\\[sdbwn.()\[]|\(\?|\[\^")  # Of a regular expression.
# Texts that no page shows: of the files of examples, of prompts to a person who writes rules, of commands and code that are quoted as they are.
APART = {"judging/examples.py"}


def _finished(tree: ast.AST) -> Iterator[Tuple[int, str]]:
    """Yield the constants with words that `%`, `+` or an f-string makes into another text."""
    for node in ast.walk(tree):
        parts: List[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            parts = [node.left]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            parts = [node.left, node.right]
        elif isinstance(node, ast.JoinedStr):
            parts = list(node.values)
        for part in parts:
            constants = [part.body, part.orelse] if isinstance(part, ast.IfExp) else [part]
            for constant in constants:
                if isinstance(constant, ast.Constant) and isinstance(constant.value, str) and _is_sentence(constant.value):
                    yield node.lineno, constant.value


def _is_sentence(text: str) -> bool:
    return bool(_SENTENCE.search(text)) and not _PATTERN.search(text)


def _modules() -> List[str]:
    files = [path.relative_to(PACKAGE).as_posix() for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))]
    return [file for file in files if file not in APART]


@pytest.mark.parametrize("module", _modules())
def test_no_sentence_is_finished_in_the_code(module: str) -> None:
    """A module of judging or standing gives its sentences as templates with named places."""
    assert list(_finished(ast.parse((PACKAGE / module).read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "code",
    [
        '"%s waits at %s." % (who, where)',
        '"The rank waits" + where',
        'f"{who} waits at {where}"',
        '("is at %s" if one else "they are at %s") % where',
    ],
)
def test_a_finished_sentence_is_found(code: str) -> None:
    """Each way to build a sentence is found."""
    assert list(_finished(ast.parse(code)))


@pytest.mark.parametrize("code", ['"%s:%d" % (file, line)', 'r"\\[Rank \\d+\\] did not reach %s" % name', 'say("{who} waits at {where}.", who=who)'])
def test_what_is_no_sentence_is_let_through(code: str) -> None:
    """A place, a regular expression and a template are not sentences."""
    assert not list(_finished(ast.parse(code)))
