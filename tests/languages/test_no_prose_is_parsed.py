"""Pages and commands look for patterns in what others wrote; what the package itself says has values."""

import ast
from pathlib import Path
from typing import List

import pytest

import ddp_probe

PACKAGE = Path(str(ddp_probe.__file__)).parent
ROOMS = ("showing", "cli", "wording")
OVER = {
    "cli/_chosen_ranks.py ranks_of": "what a person typed after --ranks",
    "cli/_help_texts.py _COMMAND_LINE": "the docstring of a command: no paragraph of code is translated",
    "cli/_help_texts.py _LABEL": "the docstring of a command: the columns of a list in it",
    "cli/_parse.py _Parser": "what argparse says",
    "cli/_parse.py _as_text": "what argparse says",
    "cli/_sizes.py size_of": "a number of bytes that a person typed",
    "cli/_static.py _normal": "the name of a distribution",
    "cli/_static.py _stands": "the source of torch and mmengine",
    "cli/completion.py _filled": "the script of a shell",
    "cli/explain.py _PARTS": "white space of a file of the job",
    "cli/explain.py _matching": "the id that a person typed",
    "cli/explain.py _unknown": "the id that a person typed",
    "cli/explain.py _word": "a word that a person is looking for",
    "cli/logs.py _FILE": "the name of a file",
    "cli/logs.py _columns": "a width that a person typed",
    "cli/logs.py _since": "a time that a person typed",
    "cli/logs.py add_arguments": "a time that a person typed",
    "showing/found.py _NUMBER": "the values of a text, one at a time: numbers of devices and in quotes",
    "showing/html/matrix.py _NUMBER": "the name of a device",
    "showing/language.py _PLACE": "a template, of which the places are taken out to see whether it has words",
    "showing/language.py _WORD": "a template, of which the places are taken out to see whether it has words",
    "showing/layout.py _SEGMENT": "where a line of Chinese can be broken",
    "showing/masker.py _KEY_BEGINS": "a private key in what is passed on",
    "showing/masker.py _KEY_ENDS": "a private key in what is passed on",
    "showing/masker.py _known": "secrets of this host in what is passed on",
    "showing/own_change.py _appended": "the source of the job",
    "showing/own_change.py _span": "the source of the job",
    "showing/own_change.py _with": "the source of the job",
    "showing/paths.py Places": "the lines of a page, cut to its width: a link for each name of a file",
    "showing/paths.py _SOURCE": "a quote, or the name of a file",
    "showing/paths.py _SPACED": "a quote, or the name of a file",
    "showing/ranks_table.py _NUMBER": "the name of a device",
    "showing/ranks_table.py _natural": "the name of a host",
    "showing/stack_page.py _INSTALLED": "the path of a file",
    "showing/stack_page.py _NUMBER": "the name of a thread",
    "showing/watch/ask.py _REQUEST": "the name of a file",
}
"""What each regular expression is used on, by the constant, the function or the class in which it stands."""


def _places(tree: ast.Module) -> List[str]:
    """Return the names of what holds a regular expression, from the top of a module."""
    names: List[str] = []
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            names += [statement.name] if _has_pattern(statement) else []
        elif isinstance(statement, ast.Assign):
            names += _constants(statement)
        elif _has_pattern(statement):
            names.append("line %d" % statement.lineno)
    return names


def _constants(assignment: ast.Assign) -> List[str]:
    """Return the names that an assignment gives to patterns; `a, b = x, y` gives two."""
    target, value = assignment.targets[0], assignment.value
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = list(zip(target.elts, value.elts))
    named = [name for name, pattern in pairs if _has_pattern(pattern)]
    return [name.id if isinstance(name, ast.Name) else ast.dump(name) for name in named]


def _has_pattern(node: ast.AST) -> bool:
    return any(_is_pattern(inner) for inner in ast.walk(node))


def _is_pattern(node: ast.AST) -> bool:
    """Tell whether this is a call of re, or a name taken out of it."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "re"
    function = node.func if isinstance(node, ast.Call) else None
    if not isinstance(function, ast.Attribute) or function.attr == "escape":
        return False
    return isinstance(function.value, ast.Name) and function.value.id == "re"


def _of_package() -> List[str]:
    places: List[str] = []
    for room in ROOMS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            file = path.relative_to(PACKAGE).as_posix()
            tree = ast.parse(path.read_text(encoding="utf-8"))
            places += ["%s %s" % (file, name) for name in _places(tree)]
    return places


def test_each_pattern_is_over_what_others_wrote() -> None:
    """Each regular expression of what writes for people is listed with the text that it is used on."""
    assert sorted(_of_package()) == sorted(OVER)


@pytest.mark.parametrize(
    ("code", "places"),
    [
        ("A = re.compile('a')", ["A"]),
        ("A, B = re.compile('a'), 1", ["A"]),
        ("def f(text):\n    return [re.sub('a', 'b', text)]", ["f"]),
        ("class C:\n    def f(self):\n        return re.search('a', self.text)", ["C"]),
        ("from re import search", ["line 1"]),
        ("re.match('a', b)", ["line 1"]),
        ("A = re.escape(b)", []),
    ],
)
def test_a_pattern_is_seen(code: str, places: List[str]) -> None:
    """Each way to use one is seen, with its place."""
    assert _places(ast.parse(code)) == places
