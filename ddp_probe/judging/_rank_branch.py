"""Tells from the job's own source, if it is here, whether a call stands in a branch that only some ranks take: under `if rank == 0`."""

import ast
import re
from typing import Iterator, List, Optional, Tuple

from ddp_probe.reading import job_source
from ddp_probe.reading.whole_ledger import LedgerSite

_RANK = re.compile(r"(?:^|_|\b)rank(?:\b|_)|is_main|is_master|main_process", re.IGNORECASE)


def branch(site: Optional[LedgerSite]) -> Optional[int]:
    """Return the line of the `if` that only some ranks take and that holds this call, directly or by calling its function; None if there is none."""
    source = tree(site.file) if site is not None else None
    if source is None or site is None:
        return None
    held = _holding(source, site.line)
    if held is not None:
        return held
    name = _function(source, site.line)
    lines = [_holding(source, call.lineno) for call in _calls(source, name)] if name else []
    return lines[0] if lines and None not in lines else None


def tree(file: str) -> Optional[ast.AST]:
    """Return the syntax tree of a file of the job, if it is here."""
    found = job_source.read(file)
    try:
        return ast.parse(found.text) if found is not None else None
    except (SyntaxError, ValueError, RecursionError):
        return None


def _holding(source: ast.AST, line: int) -> Optional[int]:
    """Return the innermost `if` on a rank that holds a line, in its body or in its else."""
    found = [node for node in ast.walk(source) if isinstance(node, ast.If) and _RANK.search(ast.dump(node.test))]
    return max((node.lineno for node in found if _in(node.body, line) or (node.orelse and _in(node.orelse, line))), default=None)


def _in(body: List[ast.stmt], line: int) -> bool:
    first, last = _extent(body)
    return first <= line <= last


def _extent(body: List[ast.stmt]) -> Tuple[int, int]:
    return body[0].lineno, max(getattr(node, "lineno", 0) for part in body for node in ast.walk(part))


def _function(source: ast.AST, line: int) -> str:
    """Return the innermost function that holds a line."""
    found = [node for node in ast.walk(source) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _in(node.body, line)]
    return max(found, key=lambda node: node.lineno).name if found else ""


def _calls(source: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(source):
        if isinstance(node, ast.Call) and name in (getattr(node.func, "id", ""), getattr(node.func, "attr", "")):
            yield node
