"""Adds an import to a Python file, beside those that it has."""

import ast
from typing import List, Optional


def added(lines: List[str], module: str) -> Optional[List[str]]:
    """Return the lines with `import module`; as they are if it is there, and None if its name means something else."""
    tree = ast.parse("\n".join(lines))
    root = module.partition(".")[0]
    taken = False
    for node in tree.body:
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.asname is None and (name.name == module or (root == "torch" and name.name.partition(".")[0] == root)):
                    return lines  # `import torch` brings torch.distributed and torch.nn as well.
                taken = taken or name.asname == root
        elif isinstance(node, ast.ImportFrom):
            taken = taken or any((name.asname or name.name) == root for name in node.names)
    if taken:
        return None
    at = _place(lines, tree)
    return [*lines[:at], "import " + module, *lines[at:]]


def _place(lines: List[str], tree: ast.Module) -> int:
    """Before the first import that is not of __future__; else after what has to come first."""
    last = 0
    for number, node in enumerate(tree.body):
        docstring = number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not docstring and not future:
            return node.lineno - 1 if isinstance(node, (ast.Import, ast.ImportFrom)) else last or _comments(lines)
        last = node.end_lineno or node.lineno
    return last


def _comments(lines: List[str]) -> int:
    count = 0
    while count < len(lines) and lines[count].startswith("#"):
        count += 1
    return count
