"""Writes the change that lets all ranks take a branch together: they exchange what each of them would do, before the `if`."""

import ast
from typing import List, Optional

from ddp_probe.judging import change
from ddp_probe.reading import job_source
from ddp_probe.shared.schema import Site
from ddp_probe.standing.deciding import Statement
from ddp_probe.standing.source_trees import SourceModule

_NAME = "decisions"
_MADE = "%s = [None] * torch.distributed.get_world_size()"
_EXCHANGED = "torch.distributed.all_gather_object(%s, bool(%s))"
_IMPORTS = ("torch.distributed",)
_ONCE = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)  # What cannot be moved out of its statement.


def edits(statement: Statement) -> List[change.Edit]:
    """Return the edits of the `if` of a statement; an empty list if it is no `if` of its own, or its source is not here."""
    job_file = job_source.read(statement.file) if statement.file else None
    if statement.kind != "if" or job_file is None:
        return []
    try:
        module = SourceModule(job_file, ast.parse(job_file.text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    branch = _branch(module, statement.line)
    if branch is None:
        return []
    test = branch.test
    said, column = module.said(test), branch.col_offset
    line = module.lines[branch.lineno - 1]
    name = _unused(module)
    lines = (_MADE % name, _EXCHANGED % (name, said))
    start = len(line.encode()[: test.col_offset].decode(errors="replace"))
    return [
        change.Added(Site(statement.file, branch.lineno), lines, line[:column], imports=_IMPORTS),
        change.Swapped(Site(statement.file, test.lineno), start, said, "any(%s)" % name),
    ]


def _branch(module: SourceModule, line: int) -> Optional[ast.If]:
    """Return the `if` at a line if its condition is in this line alone, and lines can be added before it."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.If) or node.lineno != line:
            continue
        begins = module.lines[line - 1].lstrip().startswith("if")  # An `elif` has no line before it.
        is_whole = node.test.lineno == node.test.end_lineno == line
        if begins and is_whole and not any(isinstance(inner, _ONCE) for inner in ast.walk(node.test)):
            return node
    return None


def _unused(module: SourceModule) -> str:
    """Return a name that the program does not use."""
    used = {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)}
    name = _NAME
    while name in used:
        name += "_"
    return name
