"""No sentence about a run is finished in the code: it is a template with values, which a page can write in each language."""

import ast
import re
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import pytest

import ddp_probe

PACKAGE = Path(ddp_probe.__file__).parent
ROOMS = (
    "judging",
    "standing",
    "doctor",
    "reading",
    "checkpoints",
    "moving",
    "attaching",
    "showing",
    "cli",
    "activation/installer",
)
_SENTENCE = re.compile(r"[A-Za-z]{2,}[^%]* [a-z]{2,}")
# Of a regular expression, a command, code.
_OTHER = re.compile(r"\\[sdbwn.()\[]|\(\?|\[\^|^(?:(?:%s|\{0\}) )?(?:python|-m|pip) |^(?:dict|os\.\w+)\(|^\$|\(\)")
APART = {
    "judging/examples.py": "no page shows its texts",
    "judging/site_rule_draft.py": "a file that a person fills in, in English",
    "doctor/programs/": "they run in a child and print what they say, which is quoted",
    "checkpoints/pickle_machine.py": "what is wrong with a pickle is quoted",
    "showing/brief_form.py": "a form for programs, in English",
    "showing/github.py": "a form for programs, in English",
    "showing/github_summary.py": "a form for programs, in English",
    "showing/junit.py": "a form for programs, in English",
    "showing/trace.py": "a form for programs, in English",
    "showing/event_line.py": "an event is shown as it is written, in English",
    "moving/bundle/bundle_pages.py": "the pages in an archive are for whoever reads the issue, in English",
    "moving/gather/": "what hosts tell each other, in English",
    "attaching/": "what is written into the log of a run, in English",
    "cli/_completion_fish.py": "a script",
    "cli/_stdout.py": "it must be said without any import",
}
"""Modules that may finish a sentence, and why."""
MAY_FINISH = {
    "'none'; style-src": "a policy of HTML",
    "name[%d:]": "code",
    "import importlib.util, sys": "code, for a child interpreter",
    "all = [found]": "code, for a child interpreter",
    "more characters)": "it stands beside what a program printed",
    "hang in %s": "the name of a span, which is that of an event",
    "report --help' describes": "help, in English",
    "; default: events": "help, in English",
    "byte_order in the header": "of `schema ledger`, which is JSON",
}
"""What a finished text of any module may hold, and why."""


def _finished(tree: ast.AST) -> Iterator[Tuple[int, str]]:
    """Yield the constants with words, in functions, that `%`, `+`, format() or an f-string makes into another text, also by their names."""
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    named = _named(tree)
    for node in (inner for function in functions for inner in ast.walk(function)):
        parts: List[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            parts = [node.left]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            parts = [node.left, node.right]
        elif isinstance(node, ast.JoinedStr):
            parts = list(node.values)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            parts = [node.func.value]
        for part in parts:
            constants = [part.body, part.orelse] if isinstance(part, ast.IfExp) else [part]
            for constant in constants:
                text = named.get(constant.id, "") if isinstance(constant, ast.Name) else _text(constant)
                if _is_sentence(text):
                    yield part.lineno, text


def _named(tree: ast.AST) -> Dict[str, str]:
    """Return the constants of a module and of its functions by the names that they are given."""
    named: Dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            named[node.targets[0].id] = _text(node.value)
    return named


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_sentence(text: str) -> bool:
    if any(part in text for part in MAY_FINISH):
        return False
    return bool(_SENTENCE.search(text)) and not _OTHER.search(text)


def _modules() -> List[str]:
    files = [path.relative_to(PACKAGE).as_posix() for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))]
    return [file for file in files if not file.startswith(tuple(APART))]


@pytest.mark.parametrize("module", _modules())
def test_no_sentence_is_finished_in_the_code(module: str) -> None:
    """A module that says something to a person gives its sentences as templates with named places."""
    assert list(_finished(ast.parse((PACKAGE / module).read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize("module", sorted(APART))
def test_a_module_that_may_finish_sentences_does(module: str) -> None:
    """A module that needs no exception any more stands in no list."""
    files = [PACKAGE / module] if module.endswith(".py") else sorted((PACKAGE / module).rglob("*.py"))
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    assert any(list(_finished(tree)) for tree in trees)


_IN_FUNCTION = "_WAITS = '%%s waits for %%s.'\ndef f():\n    return %s"


@pytest.mark.parametrize(
    "code",
    [
        '"%s waits at %s." % (who, where)',
        '"The rank waits" + where',
        'f"{who} waits at {where}"',
        '("is at %s" if one else "they are at %s") % where',
        '"{} waits at {}".format(who, where)',
        "_WAITS % (who, where)",
    ],
)
def test_a_finished_sentence_is_found(code: str) -> None:
    """Each way to build a sentence is found."""
    assert list(_finished(ast.parse(_IN_FUNCTION % code)))


@pytest.mark.parametrize("code", ['"%s:%d" % (file, line)', 'r"\\[Rank \\d+\\] did not reach %s" % name', 'say("{who} waits at {where}.", who=who)'])
def test_what_is_no_sentence_is_let_through(code: str) -> None:
    """A place, a regular expression and a template are not sentences."""
    assert not list(_finished(ast.parse(_IN_FUNCTION % code)))


_COMMAND = re.compile(r"python -m ddp_probe [a-z]+\b(?! [A-Z]{2,})")


@pytest.mark.parametrize("place", [module for module in _modules() if module.startswith(("judging/", "standing/"))])
def test_a_command_is_a_value(place: str) -> None:
    """A command that can be given as it stands is no part of a template: --json has it beside the text."""
    tree = ast.parse((PACKAGE / place).read_text(encoding="utf-8"))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert [text for text in texts if _COMMAND.search(text)] == []
