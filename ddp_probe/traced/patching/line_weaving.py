"""A function's code with one call more, before one statement: made of its file's source, on the same lines and columns.

The source counts only if it compiles to the very code that runs: that is compared where the code is put in.
"""

import ast
from types import CodeType
from typing import Any, Iterator, List, Optional, Tuple

from ddp_probe.shared.ours import ours
from ddp_probe.traced.patching.woven import NotWoven

_HOOK = "ddp_probe: line"
_BLOCKS = ("body", "orelse", "finalbody")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FUNCTION = 1  # CO_OPTIMIZED


class WatchedSource:
    """The source of one file, parsed and compiled."""

    def __init__(self, file: str) -> None:
        self.file = file
        try:
            with open(file, "rb") as stream:
                self.text = stream.read()
            self.tree = ast.parse(self.text, file)
            self.code = compile(self.text, file, "exec", dont_inherit=True)
        except ours(OSError, SyntaxError, ValueError):
            raise NotWoven("its source cannot be read") from None

    def function_at(self, line: int) -> Optional[CodeType]:
        """Return the code of the outermost function that holds a line; None if it is in no function."""
        return next((code for code in _outermost(self.code) if line in _lines(code)), None)

    def definition_at(self, line: int) -> ast.stmt:
        """Return the statement of the module that holds a line."""
        for statement in self.tree.body:
            if first_line(statement) <= line <= (statement.end_lineno or 0):
                return statement
        raise NotWoven("there is no statement")


def first_line(definition: ast.stmt) -> int:
    """Return the line at which a statement begins, decorators included."""
    decorators: List[ast.expr] = getattr(definition, "decorator_list", [])
    return min([definition.lineno, *(decorator.lineno for decorator in decorators)])


def _outermost(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of each function that is in no other function."""
    for const in code.co_consts:
        if type(const) is CodeType and const.co_flags & _FUNCTION:
            yield const
        elif type(const) is CodeType:
            yield from _outermost(const)


def _lines(code: CodeType) -> range:
    """Return the lines of a function, inner functions included."""
    last = code.co_firstlineno
    for inner in with_inner(code):
        last = max([last, *(line for line in _starts(inner) if line)])
    return range(code.co_firstlineno, last + 1)


def with_inner(code: CodeType) -> Iterator[CodeType]:
    """Yield a code and the codes of all functions and classes in it."""
    yield code
    for const in code.co_consts:
        if type(const) is CodeType:
            yield from with_inner(const)


def _starts(code: CodeType) -> List[Any]:
    import dis

    return [line for _, line in dis.findlinestarts(code)]


def statement_at(tree: ast.AST, line: int) -> Optional[ast.stmt]:
    """Return the innermost statement whose own part, without the blocks in it, holds a line."""
    innermost: Optional[ast.stmt] = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not isinstance(node, _DEFINITIONS) and node.lineno <= line <= _own_end(node):
            innermost = node
    return innermost


def _own_end(statement: ast.stmt) -> int:
    """Return the last line of a statement before its first block."""
    blocks = [getattr(statement, name, None) for name in _BLOCKS]
    first = next((block[0].lineno for block in blocks if isinstance(block, list) and block), None)
    return max(statement.lineno, first - 1) if first is not None else statement.end_lineno or statement.lineno


def names_of(statement: ast.stmt) -> List[str]:
    """Return the names that a statement itself asks for, such as `loss` and `self.best`, in their order."""
    names: List[Tuple[int, int, str]] = []
    waiting: List[ast.AST] = [child for child in ast.iter_child_nodes(statement) if isinstance(child, (ast.expr, ast.withitem))]
    while waiting:
        node = waiting.pop()
        name = _dotted(node)
        if name:
            names.append((getattr(node, "lineno", 0), getattr(node, "col_offset", 0), name))
        else:
            waiting.extend(ast.iter_child_nodes(node))
    return list(dict.fromkeys(name for _, _, name in sorted(names)))


def _dotted(node: Optional[ast.AST]) -> str:
    parts: List[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def with_call(source: WatchedSource, line: int, hook: Any) -> CodeType:
    """Return the code of the outermost function that holds a line, with a call of the hook each time the line is reached."""
    tree = ast.parse(source.text, source.file)
    statement = statement_at(tree, line)
    if statement is None:
        raise NotWoven("there is no statement")
    call = _call(statement)
    if isinstance(statement, ast.While):
        statement.test = _at(statement, ast.BoolOp(op=ast.Or(), values=[call, statement.test]))
    else:
        block = _block_of(tree, statement)
        block.insert(block.index(statement), _at(statement, ast.Expr(value=call)))
    code = compile(tree, source.file, "exec", dont_inherit=True)
    pairs = zip(_outermost(source.code), _outermost(code))
    woven = next(new for original, new in pairs if line in _lines(original))
    return _with_hook(woven, hook)


def _at(statement: ast.stmt, node: Any) -> Any:
    """Return a node at the beginning of a statement's line."""
    node.lineno = node.end_lineno = statement.lineno
    node.col_offset = node.end_col_offset = statement.col_offset
    return node


def _call(statement: ast.stmt) -> Any:
    """Call a text that the hook replaces; by way of `or`, as the call of a text alone is warned of while it is compiled."""
    texts = [_at(statement, ast.Constant(value=_HOOK, kind=None)) for _ in range(2)]
    function = _at(statement, ast.BoolOp(op=ast.Or(), values=texts))
    return _at(statement, ast.Call(func=function, args=[], keywords=[]))


def _block_of(tree: ast.AST, statement: ast.stmt) -> List[Any]:
    for node in ast.walk(tree):
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list) and statement in block:
                return block
    raise NotWoven("there is no statement")


def _with_hook(code: CodeType, hook: Any) -> CodeType:
    consts: List[Any] = []
    for const in code.co_consts:
        if type(const) is CodeType:
            consts.append(_with_hook(const, hook))
        else:
            consts.append(hook if type(const) is str and const == _HOOK else const)
    return code.replace(co_consts=tuple(consts))
