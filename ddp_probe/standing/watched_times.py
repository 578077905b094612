"""From which time on ranks decided differently at the line that DDP_PROBE_WATCH names, by the values that each of them has written there."""

import ast
import operator
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Type

Values = Mapping[str, str]
_COMPARE: Dict[Type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_COMPUTE: Dict[Type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_SIGNS: Dict[Type[ast.unaryop], Callable[[Any], Any]] = {ast.Not: operator.not_, ast.USub: operator.neg}
_NUMBERS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


class UnlikeTime(NamedTuple):
    """The first time at which ranks differ: in what the condition says, or, if that cannot be told, in the values."""

    times: int
    values: Dict[int, Values]
    says: Dict[int, Optional[bool]]  # By rank: whether the condition holds; None if the values do not tell.


def first_unlike(reached: Mapping[int, Mapping[int, Values]], condition: str) -> Optional[UnlikeTime]:
    """Return the first time at which ranks differ; None if they do not. `reached` is by rank, then by how often the line had been reached."""
    if len(reached) < 2:
        return None
    shared = set.intersection(*(set(times) for times in reached.values()))
    for times in sorted(shared):
        values = {rank: reached[rank][times] for rank in sorted(reached)}
        says = {rank: holds(condition, values[rank]) for rank in values}
        is_told = None not in says.values()
        if len(set(says.values())) > 1 if is_told else _differ(values):
            return UnlikeTime(times, values, says)
    return None


def _differ(values: Mapping[int, Values]) -> bool:
    first = next(iter(values.values()))
    return any(other != first for other in values.values())


def holds(condition: str, values: Values) -> Optional[bool]:
    """Return whether a condition on plain values holds; None if it asks for more, such as a call. Nothing of the job is executed."""
    try:
        return bool(_value(ast.parse(condition, mode="eval").body, values))
    except (SyntaxError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        return None


def _value(node: Any, values: Values) -> Any:
    """Return the value of an expression; raises KeyError for what is not computed here."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _parsed(values[_dotted(node)])
    if isinstance(node, ast.BoolOp):
        return _joined(node, values)
    if isinstance(node, ast.UnaryOp):
        return _SIGNS[type(node.op)](_value(node.operand, values))
    if isinstance(node, ast.BinOp):
        return _COMPUTE[type(node.op)](_value(node.left, values), _value(node.right, values))
    if isinstance(node, ast.Compare):
        return _compared(node, values)
    raise KeyError(type(node).__name__)


def _joined(node: ast.BoolOp, values: Values) -> Any:
    is_or = isinstance(node.op, ast.Or)
    answer: Any = None
    for part in node.values:
        answer = _value(part, values)
        if bool(answer) is is_or:
            break
    return answer


def _compared(node: ast.Compare, values: Values) -> bool:
    left = _value(node.left, values)
    for compare, part in zip(node.ops, node.comparators):
        right = _value(part, values)
        if not _COMPARE[type(compare)](left, right):
            return False
        left = right
    return True


def _parsed(text: str) -> Any:
    """Return a number, a flag or None; raises ValueError for a length, a shape or a mask."""
    return _NUMBERS[text] if text in _NUMBERS else ast.literal_eval(text)


def _dotted(node: Any) -> str:
    return "%s.%s" % (_dotted(node.value), node.attr) if isinstance(node, ast.Attribute) else str(node.id)
