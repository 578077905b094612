"""Writes the change that lets all ranks take a branch together: they exchange what each of them would do, before the `if`."""

import ast
from typing import List, Optional

from ddp_probe.judging import change, job_calls
from ddp_probe.shared.schema import Site
from ddp_probe.standing.deciding import Statement

_MADE = "%s = [None] * torch.distributed.get_world_size()"
_EXCHANGED = "torch.distributed.all_gather_object(%s, bool(%s))"
_IMPORTS = ("torch.distributed",)
_ONCE = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)  # What cannot be moved out of its statement.


def edits(statement: Statement) -> List[change.Edit]:
    """Return the edits of the `if` of a statement; an empty list if it is no `if` of its own, or its source is not here."""
    source = job_calls.source(Site(statement.file, statement.line))
    if statement.kind != "if" or source is None:
        return []
    lines, tree = source
    branch = _branch(lines, tree, statement.line)
    if branch is None:
        return []
    name, said = job_calls.unused(tree, "decisions"), job_calls.text_of(lines, branch.test)
    row, column = job_calls.position(lines, *job_calls.start(branch.test))
    indent = lines[row][: branch.col_offset]
    site = Site(statement.file, statement.line)
    return [
        change.Added(site, (_MADE % name, _EXCHANGED % (name, said)), indent, imports=_IMPORTS),
        change.Swapped(site, column, said, "any(%s)" % name),
    ]


def _branch(lines: List[str], tree: ast.AST, line: int) -> Optional[ast.If]:
    """Return the `if` at a line if its condition is in this line alone, and lines can be added before it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.If) or node.lineno != line:
            continue
        begins = lines[line - 1].lstrip().startswith("if")  # An `elif` has no line before it.
        is_whole = node.test.lineno == node.test.end_lineno == line
        if begins and is_whole and not any(isinstance(inner, _ONCE) for inner in ast.walk(node.test)):
            return node
    return None
