"""Adds an import to a Python file, next to its existing ones."""

import ast
from typing import List, Optional


def added(lines: List[str], module: str) -> Optional[List[str]]:
    """Return the lines with `import module` added; unchanged if it is already imported, None if its name is taken."""
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
    at = _first_import(lines, tree)
    return [*lines[:at], "import " + module, *lines[at:]]


def _first_import(lines: List[str], tree: ast.Module) -> int:
    """Return the index of the first import except from __future__, else the index after the lines that must come first."""
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
