"""Prints docs/contributing/facts.md: what a rule can ask of a run.

It is made from the functions of ddp_probe/judging that rules import, and from the run itself.
"""

import ast
import re
from pathlib import Path
from typing import Dict, Iterator, Optional, Set

from docs_parts.markdown import NOTE, prose

_PACKAGE = Path(__file__).resolve().parent.parent.parent / "ddp_probe"
_JUDGING = _PACKAGE / "judging"
_OBJECTS = (
    ("Run", "run", "reading/model.py"),
    ("LoggedProcess", "process", "reading/model.py"),
    ("LoggedCall", "call", "reading/logged_call.py"),
    ("LedgerStanding", "standing", "standing/rank_standing.py"),
    ("Standing", "standing", "judging/ledgers.py"),
    ("Record", "record", "reading/whole_ledger.py"),
)
"""What a rule holds in its hands: the class, the word for one in a rule, and its file."""
_HELD = re.compile(r"(?:\s{8}self\.|\s{4}(?=\w+: ))([a-z]\w*)(?:: (.+?))?(?: = .+?)?(?:  # (.+))?$")


def facts_page() -> str:
    """Return docs/contributing/facts.md."""
    return "\n".join([NOTE % "ddp_probe/judging and ddp_probe/reading", *_lines()]) + "\n"


def _lines() -> Iterator[str]:
    yield "# What a rule can ask of a run"
    yield ""
    yield "`check(run)` of a [rule](../../CONTRIBUTING.md#add-a-rule) gets one launch. It reads the run, and asks the functions below,"
    yield "which it imports from `ddp_probe.judging`. One that is marked *once* is a `fact` (`ddp_probe/judging/facts.py`): it looks once for"
    yield "each run, however many rules ask, and the run keeps its answer. What several rules need is a function here, in the module of its"
    yield "subject, and not in one of the rules."
    yield from _objects()
    used = _used()
    for path in sorted(_JUDGING.glob("*.py")):
        rows = list(_functions(path, used.get(path.stem, set())))
        if rows:
            about = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n\n")[0]
            yield from (
                "",
                "## %s" % path.stem,
                "",
                prose(" ".join(about.split())),
                "",
                "| function | once | what it returns |",
                "|---|---|---|",
                *rows,
            )


def _objects() -> Iterator[str]:
    for title, word, file in _OBJECTS:
        text = (_PACKAGE / file).read_text(encoding="utf-8")
        node = next(one for one in ast.parse(text).body if isinstance(one, ast.ClassDef) and one.name == title)
        about = prose(" ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split()))
        yield from ("", "## %s" % title, "", about, "", "| attribute | what it is |", "|---|---|", *_members(text, node, word))


def _members(text: str, kind: ast.ClassDef, word: str) -> Iterator[str]:
    lines, said = text.splitlines(), kind.body[0].end_lineno if ast.get_docstring(kind) else kind.lineno
    for line in lines[said or 0 : kind.end_lineno]:
        held = _HELD.match(line)
        if held and held[1] != "facts" and (held[2] or held[3]):
            yield "| `%s.%s`%s | %s |" % (word, held[1], _typed(held[2]), prose(held[3] or ""))
    for node in kind.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            as_call = "" if any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list) else _called(node, 1)
            yield "| `%s.%s%s`%s | %s |" % (word, node.name, as_call, _returned(text, node), prose(_first(node)))


def _used() -> Dict[str, Set[str]]:
    """Return the names that rules use of each module of judging."""
    found: Dict[str, Set[str]] = {}
    for path in (_JUDGING / "rules").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ddp_probe.judging."):
                found.setdefault((node.module or "").rpartition(".")[2], set()).update(alias.name for alias in node.names)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and (_JUDGING / (node.value.id + ".py")).exists():
                found.setdefault(node.value.id, set()).add(node.attr)
    return found


def _functions(path: Path, used: Set[str]) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name in used and node.args.args and node.args.args[0].arg == "run":
            once = "once" if any(isinstance(one, ast.Name) and one.id == "fact" for one in node.decorator_list) else ""
            yield "| `%s%s`%s | %s | %s |" % (
                node.name,
                _called(node, 0),
                _returned(text, node),
                once,
                prose(_first(node)),
            )


def _called(node: ast.FunctionDef, skipped: int) -> str:
    return "(%s)" % ", ".join(one.arg for one in node.args.args[skipped:])


def _returned(text: str, node: ast.FunctionDef) -> str:
    return _typed(ast.get_source_segment(text, node.returns) if node.returns is not None else None)


def _typed(text: Optional[str]) -> str:
    return ": `%s`" % text.strip("'\"") if text else ""


def _first(node: ast.FunctionDef) -> str:
    return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
