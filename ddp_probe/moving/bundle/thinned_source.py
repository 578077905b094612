"""Removes from a source file what the report does not look into: other functions are private. Lines keep their numbers."""

import ast
from typing import Iterator, List, Set, Tuple

from ddp_probe.judging import change
from ddp_probe.judging.judge import Diagnosis
from ddp_probe.reading.model import LoggedProcess
from ddp_probe.shared.schema import HangSuspected

_BEFORE, _AFTER = 2, 7  # Lines around a quoted one that the report may show.
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def places(diagnosis: Diagnosis) -> Set[Tuple[str, int]]:
    """Return the lines of the job that the report shows, or that a rule looks at to tell which rank is wrong, by file name."""
    lines: List[Tuple[str, int]] = []
    for finding in diagnosis.findings:
        sites = [evidence.site for evidence in finding.evidence]
        lines += [(site.file, site.line) for site in sites if site is not None]
        for edit in finding.edits:
            site = getattr(edit, "site", None)
            if not isinstance(edit, (change.Variable, change.LaunchCommand)) and site is not None:
                lines.append((site.file, site.line))
    for process in diagnosis.run.processes:
        lines += _stands(process)
    return set(lines)


def _stands(process: LoggedProcess) -> Iterator[Tuple[str, int]]:
    """Yield where a rank is, by its ledger and by its stacks."""
    records = [*process.ledger.open, process.ledger.last] if process.ledger is not None else []
    yield from ((record.site.file, record.site.line) for record in records if record is not None and record.site is not None)
    call = process.final(HangSuspected)
    for thread in call.begin.threads if call is not None else ():
        yield from ((site.file, site.line) for site in thread.frames)


def thinned(text: str, lines: Set[int]) -> str:
    """Return the text with its imports, the statements at these lines and what calls their functions; every other line is empty."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    wanted: Set[int] = set()
    for line in lines:
        wanted.update(range(line - _BEFORE, line + _AFTER))
    names = {node.name for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) and not wanted.isdisjoint(_span(node))}
    wanted |= {node.lineno for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) in names}
    kept = wanted.union(*[_kept(node, wanted) for node in tree.body])
    numbered = enumerate(text.splitlines(keepends=True), 1)
    return "".join(line if number in kept else "\n" for number, line in numbered)


def _span(node: ast.AST) -> Set[int]:
    decorators: List[ast.expr] = getattr(node, "decorator_list", [])
    first = min([getattr(node, "lineno", 0), *(decorator.lineno for decorator in decorators)])
    return set(range(first, (getattr(node, "end_lineno", 0) or first) + 1))


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _kept(node: ast.stmt, wanted: Set[int]) -> Set[int]:
    """Return the lines of a statement that stay: all or none, and of a class the methods that are looked into."""
    span = _span(node)
    if isinstance(node, (ast.Import, ast.ImportFrom)) or (not isinstance(node, ast.ClassDef) and not wanted.isdisjoint(span)):
        return span
    if not isinstance(node, ast.ClassDef) or wanted.isdisjoint(span):
        return set()
    inner: Set[int] = set().union(*[_kept(statement, wanted) for statement in node.body])
    header = set(range(min(span), min(_span(node.body[0]))))
    return header | inner if inner else span
