"""The condition under which the job calls no_sync(), if ranks hold their gradients back in different steps."""

import ast
from typing import Iterator, List, Optional, Sequence, Tuple

from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.standing.conditions import hint_of, names_in
from ddp_probe.standing.deciding import LONGEST_TEXT, Deciding, Statement
from ddp_probe.standing.source_trees import Function, SourceModule, SourceTrees, called, function_name, own_nodes

_Condition = Tuple[ast.AST, ast.expr, str]  # The statement or expression that asks, what it asks, and its kind.


def no_sync_condition(sources: SourceTrees, way: Sequence[LedgerSite]) -> Optional[Deciding]:
    """Return the conditions around the call of no_sync() that is next before a forward pass; None if the source shows none."""
    for site in reversed(way):
        module, function = sources.unchanged(site.file), sources.function(site)
        if module is None or function is None:
            continue
        nodes = list(own_nodes(iter(function.body if isinstance(function.body, list) else [function.body])))
        calls = [node for node in nodes if isinstance(node, ast.Call) and called(node) == "no_sync"]
        before = [call for call in calls if call.lineno <= site.line]
        if not before:
            continue
        call = max(before, key=lambda each: each.lineno)
        statements = [_statement(site, module, function, condition) for condition in _around(nodes, call)]
        return _deciding(site, call, statements) if statements else None
    return None


def _around(nodes: Sequence[ast.AST], call: ast.Call) -> List[_Condition]:
    """Return the conditions around a call, the innermost first."""
    around = [condition for node in nodes for condition in _asking(node) if _decides(node, condition[1], call)]
    return sorted(around, key=lambda condition: -getattr(condition[0], "lineno", 0))


def _asking(node: ast.AST) -> Iterator[_Condition]:
    if isinstance(node, ast.If):
        yield node, node.test, "if"
    elif isinstance(node, ast.IfExp):
        yield node, node.test, "conditional"


def _decides(node: ast.AST, test: ast.expr, call: ast.Call) -> bool:
    """Tell whether a call is in one of the arms of a condition, and not in what it asks."""
    inside = any(child is call for child in ast.walk(node))
    return inside and not any(child is call for child in ast.walk(test))


def _statement(site: LedgerSite, module: SourceModule, function: Function, condition: _Condition) -> Statement:
    node, test, kind = condition
    said = module.said(test)
    text = "if %s" % said if kind == "if" else said
    names, hint = names_in([test], module), hint_of([test], function, module)
    line = getattr(node, "lineno", site.line)
    return Statement(site.file, line, kind, text[:LONGEST_TEXT], names, hint, function_name(function))


def _deciding(site: LedgerSite, call: ast.Call, statements: List[Statement]) -> Deciding:
    return Deciding(site.function, site.file, tuple(statements), len(statements) == 1, call.lineno, site.line)
