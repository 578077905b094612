"""The loop of the job around a call, by its source, and whether what the call is given belongs to the loop's item.

A tensor that is looked up by the item is the item's own: `sums[name]`, or `value` of `for name, value in sums.items()`.
What a function makes of the item may be anything, such as the loss of a file that each rank reads in its own order.
"""

import ast
from typing import Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.standing.conditions import names_in
from ddp_probe.standing.deciding import LONGEST_TEXT, Statement
from ddp_probe.standing.source_trees import Function, SourceModule, SourceTrees, called, function_name, own_nodes
from ddp_probe.standing.woven_flow import without_comprehensions

_FRAMES = 8  # The loop is in one of this many functions from the call outwards.
_BACK = 3  # Assignments that are followed back from a name.
_LOOKS_UP = frozenset("get pop setdefault __getitem__ getattr".split())
_CONVERTS = frozenset(
    "tensor as_tensor Tensor FloatTensor DoubleTensor LongTensor from_numpy array asarray float int stack cat list tuple sum clone".split()
)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Loop = Union[ast.For, ast.AsyncFor, ast.comprehension]


class ItemLoop(NamedTuple):
    """A loop around a call."""

    statement: Statement
    gives_tensor: bool  # The call is given what belongs to the item.


def item_loop(sources: SourceTrees, way: Sequence[LedgerSite], op: str) -> Optional[ItemLoop]:
    """Return the innermost loop over names around a call, or one further out if that gives the call its tensor.

    It is None if the source does not show any.
    """
    lines = without_comprehensions(tuple(way))[-_FRAMES:]
    wanted = [*(site.function.rpartition(".")[2] for site in lines[1:]), op]
    first: Optional[ItemLoop] = None
    for site, name in zip(reversed(lines), reversed(wanted)):
        module, function = sources.unchanged(site.file), sources.function(site)
        if module is None or function is None:
            continue
        for loop in _loops_around(function, site.line):
            given = _Given(function, loop, site.line)
            found = ItemLoop(_statement(site, module, function, loop), given.belongs_to_item(name))
            if found.gives_tensor:
                return found
            first = first or found
    return first


def _loops_around(function: Function, line: int) -> List[_Loop]:
    """Return the loops around a line that have an item, the innermost first.

    One that goes over what the item of another holds is part of that one.
    """
    around: List[_Loop] = []
    for node in _inside(function):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            around += [node] if node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0) else []
        elif isinstance(node, _COMPREHENSIONS):
            around += node.generators if node.lineno <= line <= (node.end_lineno or 0) else []
    around = [loop for loop in around if not _is_call(loop.iter, "range")]
    around.sort(key=lambda loop: -loop.iter.lineno)
    items: Set[str] = set()
    loops: List[_Loop] = []
    for loop in reversed(around):
        if not _names(loop.iter) & items:
            loops.insert(0, loop)
        items.update(_targets(loop))
    return loops


def _inside(function: Function) -> Iterator[ast.AST]:
    return own_nodes(iter(function.body if isinstance(function.body, list) else [function.body]))


def _targets(loop: _Loop) -> List[str]:
    """Return the variables that a loop gives its item to, without the number of enumerate()."""
    names = [node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)]
    return names[1:] if _is_call(loop.iter, "enumerate") else names


def _is_call(part: ast.AST, name: str) -> bool:
    return isinstance(part, ast.Call) and called(part) == name


def _names(part: ast.AST) -> Set[str]:
    return {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}


class _Given:
    """What a call in a loop is given."""

    def __init__(self, function: Function, loop: _Loop, line: int) -> None:
        items = _targets(loop)
        self._item = set(items)
        self._values = set(items[1:])  # The first one is the name, the rest is what belongs to it.
        self._line = line
        body = loop.body if isinstance(loop, (ast.For, ast.AsyncFor)) else []
        assigned = [node for node in own_nodes(iter(body)) if isinstance(node, ast.Assign)]
        self._assigned = [node for node in assigned if node.lineno <= line]
        calls = [node for node in _inside(function) if isinstance(node, ast.Call)]
        self._calls = [call for call in calls if call.lineno <= line <= (call.end_lineno or 0)]

    def belongs_to_item(self, name: str) -> bool:
        """Tell whether an argument of the call of this name belongs to the loop's item."""
        calls = [call for call in self._calls if called(call) == name] or self._calls
        given = [argument for call in calls for argument in _arguments(call)]
        return any(self._belongs(argument, _BACK) for argument in given)

    def _belongs(self, part: ast.AST, back: int) -> bool:
        if isinstance(part, ast.Name):
            if part.id in self._values:
                return True
            return back > 0 and any(self._belongs(value, back - 1) for value in self._given_to(part.id))
        if isinstance(part, ast.Subscript):
            return bool(_names(part.slice) & self._item) or self._belongs(part.value, back)
        if isinstance(part, ast.Attribute):
            return self._belongs(part.value, back)
        if isinstance(part, ast.Call):
            return self._is_looked_up(part, back)
        if isinstance(part, (ast.BinOp, ast.UnaryOp, ast.List, ast.Tuple, ast.Starred)):
            return any(self._belongs(child, back) for child in ast.iter_child_nodes(part))
        return False

    def _is_looked_up(self, call: ast.Call, back: int) -> bool:
        name, arguments = called(call), _arguments(call)
        keys = {argument.id for argument in arguments if isinstance(argument, ast.Name)}
        if name in _LOOKS_UP and keys & self._item:
            return True
        if isinstance(call.func, ast.Attribute) and self._belongs(call.func.value, back):
            return True
        return name in _CONVERTS and any(self._belongs(argument, back) for argument in arguments)

    def _given_to(self, name: str) -> Iterator[ast.AST]:
        """Yield what is assigned to a variable in the loop before the call."""
        for node in self._assigned:
            if any(isinstance(target, ast.Name) and target.id == name for target in node.targets):
                yield node.value


def _arguments(call: ast.Call) -> List[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _statement(site: LedgerSite, module: SourceModule, function: Function, loop: _Loop) -> Statement:
    is_statement = isinstance(loop, (ast.For, ast.AsyncFor))
    line = loop.lineno if is_statement else loop.iter.lineno  # type: ignore[union-attr]  # Just asked.
    text = "for %s in %s" % (module.said(loop.target), module.said(loop.iter))
    names: Tuple[str, ...] = names_in([loop.iter], module)
    return Statement(site.file, line, "for", text[:LONGEST_TEXT], names, "", function_name(function))
