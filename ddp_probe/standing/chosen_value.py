"""What chose a value that a line of the job uses, such as the model of a forward pass: it is followed back.

It comes from a caller, from a loop over a generator, or from a function that returns one value or another.
"""

import ast
from typing import Iterator, List, Optional, Sequence, Set, Tuple, Union

from ddp_probe.standing.conditions import hint_of, names_in
from ddp_probe.standing.deciding import LONGEST_TEXT, Deciding, Statement
from ddp_probe.standing.source_trees import (
    FUNCTIONS,
    Function,
    SourceModule,
    SourceTrees,
    called,
    function_name,
    is_generator,
    own_nodes,
)
from ddp_probe.standing.woven_flow import Way, without_comprehensions

_STEPS = 8  # Assignments and callers that a value is followed back through.
_GIVES = (ast.Return, ast.Continue, ast.Break, ast.Yield, ast.YieldFrom)
_Condition = Tuple[Function, ast.AST]


def chosen_callee(sources: SourceTrees, way: Way) -> Optional[Deciding]:
    """Return what chose the object that is called at the end of a way; None if no source shows it."""
    search = _Search(sources, without_comprehensions(way))
    conditions = search.of_callee()
    module = sources.unchanged(search.file)
    if not conditions or module is None:
        return None
    statements = tuple(_statement(search.file, module, *condition) for condition in conditions)
    first = statements[0]
    return Deciding(first.function, first.file, statements, len(statements) == 1, first.line, first.line)


class _Search:
    """Follows a value back along a way; `file` is the one that it has come to."""

    def __init__(self, sources: SourceTrees, way: Way) -> None:
        self._sources = sources
        self._way = way
        self._steps = _STEPS
        self.file = ""

    def of_callee(self) -> List[_Condition]:
        depth = len(self._way) - 1
        for call in self._calls(depth):
            names = _chosen_by(call.func)
            found = self._of_names(names, depth)
            if found:
                return found
        return []

    def _calls(self, depth: int) -> List[ast.Call]:
        """Return the calls at the line of a frame, the innermost first."""
        function = self._sources.function(self._way[depth]) if depth >= 0 else None
        if function is None:
            return []
        line = self._way[depth].line
        calls = [node for node in own_nodes(iter(_body(function))) if isinstance(node, ast.Call)]
        here = [call for call in calls if _holds(call, line)]
        return sorted(here, key=lambda call: -call.col_offset)

    def _of_names(self, names: Sequence[str], depth: int) -> List[_Condition]:
        for name in names:
            found = self._of_name(name, depth)
            if found:
                return found
        return []

    def _of_name(self, name: str, depth: int) -> List[_Condition]:
        """Return what chose the value of a variable in a frame."""
        self._steps -= 1
        site = self._way[depth]
        module, function = self._sources.unchanged(site.file), self._sources.function(site)
        if self._steps < 0 or module is None or function is None:
            return []
        self.file = site.file
        nodes = list(own_nodes(iter(_body(function))))
        for loop in nodes:
            if isinstance(loop, ast.For) and _holds(loop, site.line) and name in _names(loop.target):
                return self._of_loop(loop, module)
        assigned = [node for node in nodes if isinstance(node, ast.Assign) and node.lineno < site.line]
        given = [node for node in assigned if any(name in _names(target) for target in node.targets)]
        if given:
            return self._of_value(max(given, key=lambda node: node.lineno).value, depth)
        return self._of_parameter(name, function, depth)

    def _of_parameter(self, name: str, function: Function, depth: int) -> List[_Condition]:
        """Return what chose an argument, in the function that gave it."""
        names = [argument.arg for argument in function.args.args] if isinstance(function, FUNCTIONS) else []
        calls = [call for call in self._calls(depth - 1) if called(call) == function_name(function)]
        if name not in names or len(calls) != 1:
            return []
        call = calls[0]
        place = names.index(name) - (names[0] == "self")
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        value = given.get(name) or (call.args[place] if 0 <= place < len(call.args) else None)
        return self._of_value(value, depth - 1) if value is not None else []

    def _of_value(self, value: ast.AST, depth: int) -> List[_Condition]:
        site = self._way[depth]
        module, function = self._sources.unchanged(site.file), self._sources.function(site)
        if module is None or function is None:
            return []
        self.file = site.file
        if isinstance(value, ast.IfExp):
            return [(function, value)]
        callee = module.named(called(value)) if isinstance(value, ast.Call) else None
        if callee is not None:
            returns = [node for node in own_nodes(iter(_body(callee))) if isinstance(node, ast.Return)]
            return _conditions(callee) if len(returns) > 1 else []
        return self._of_names(_chosen_by(value), depth)

    def _of_loop(self, loop: ast.For, module: SourceModule) -> List[_Condition]:
        """Return the conditions of the generator that a loop goes over, or of its `__iter__`."""
        name = called(loop.iter) if isinstance(loop.iter, ast.Call) else ""
        generator = module.named(name) or _iterator(module, name)
        return _conditions(generator) if generator is not None and is_generator(generator) else []


def _chosen_by(part: ast.AST) -> List[str]:
    """Return the variables that choose what an expression is: its own name, or the index into a table."""
    if isinstance(part, ast.Name):
        return [part.id]
    return sorted(_names(part.slice)) if isinstance(part, ast.Subscript) else []


def _conditions(function: Function) -> List[_Condition]:
    """Return the decisions that give a value, or end a turn or the function, by line."""
    nodes = own_nodes(iter(_body(function)))
    decisions = [node for node in nodes if isinstance(node, (ast.If, ast.ExceptHandler))]
    decisions.sort(key=lambda node: node.lineno)
    return [(function, node) for node in decisions if _leads_away(node)]


def _leads_away(node: ast.AST) -> bool:
    return any(isinstance(each, _GIVES) for each in own_nodes(ast.iter_child_nodes(node)))


def _iterator(module: SourceModule, name: str) -> Optional[Function]:
    classes = [node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef) and node.name == name]
    methods: Iterator[ast.stmt] = iter(classes[0].body) if len(classes) == 1 else iter(())
    return next((node for node in methods if isinstance(node, FUNCTIONS) and node.name == "__iter__"), None)


def _statement(file: str, module: SourceModule, function: Function, node: ast.AST) -> Statement:
    kind, parts = "conditional", [node]
    if isinstance(node, ast.If):
        kind, parts = "if", [node.test]
    elif isinstance(node, ast.ExceptHandler):
        kind, parts = "except", [node.type] if node.type is not None else []
    said = " ".join(map(module.said, parts))
    text = said if kind == "conditional" else ("%s %s" % (kind, said)).strip()
    hint = "exception" if kind == "except" else hint_of(parts, function, module)
    line, names = getattr(node, "lineno", 0), names_in(parts, module)
    return Statement(file, line, kind, text[:LONGEST_TEXT], names, hint, function_name(function))


def _body(function: Function) -> List[ast.AST]:
    return list(function.body) if isinstance(function.body, list) else [function.body]


def _holds(part: Union[ast.stmt, ast.expr], line: int) -> bool:
    return part.lineno <= line <= (part.end_lineno or 0)


def _names(part: ast.AST) -> Set[str]:
    return {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
