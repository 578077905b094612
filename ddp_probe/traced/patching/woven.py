"""The code of a function with calls of ours woven in, made of its own source: its frame is the only one, as it would be without us.

The source counts only if it compiles to the very code that the function has. Each statement keeps its line and its columns. What is woven in:

    token = None
    try:
        token = begin(...)
        ...                        the function as it is, and before each return of its own: end(token, result)
    except:
        error(token)
        raise

While torch.compile is at work, it is to find the frame of the original, so a twin with the original's code is called before that.
"""

import __future__

import ast
import dis
import inspect
import re
from types import CodeType, FunctionType, ModuleType
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple, Union

from ddp_probe.shared.ours import ours
from ddp_probe.traced.patching.slot import class_attribute, is_class

_PARTS = ("begin", "end", "error", "cut", "compiles", "twin", "leave")
BEGIN, END, ERROR, CUT, COMPILES, TWIN, LEAVE = PLACES = tuple("ddp_probe: %s" % name for name in _PARTS)
"""What stands in the new code for the functions to be called, which are put in as constants afterwards."""

Given = Union[None, bool, int, str]
"""What begin is called with: a constant, or the argument with the first of the names in a text that the function has, None if it has none of them."""

_TOKEN, _RESULT, _HOOK = "_ddp_probe_token", "_ddp_probe_result", "_ddp_probe_hook"
_SHOWS_NAMES = frozenset(("locals", "vars", "dir", "eval", "exec"))
_FUTURE = 0
for _feature in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _feature).compiler_flag
_CLOSES = re.compile(r"\s*(?:[)\]}]|#|$)")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ENDS = (ast.Return, ast.Break, ast.Continue)
_STATEMENTS = ("body", "orelse", "finalbody")


class NotWoven(Exception):  # noqa: N818  # A reason, which no traceback shows.
    """Why nothing is woven into a function, in words."""


class SourceFiles:
    """The source files that have been read, for as long as functions are woven."""

    def __init__(self) -> None:
        self._lines: Dict[str, List[str]] = {}

    def block(self, code: CodeType) -> str:
        """Return the lines of a function, decorators included; those behind its last code belong to it as far as they are indented."""
        lines = self._of(code.co_filename)
        first = code.co_firstlineno - 1
        if first >= len(lines):
            raise NotWoven("its source is not there")
        depth = _depth(lines[first])
        end = max([line for _, line in dis.findlinestarts(code) if line] + [first + 1])
        while end < len(lines) and (_depth(lines[end]) > depth or _CLOSES.match(lines[end])):
            end += 1
        return "\n".join(lines[first:end])

    def _of(self, file: str) -> List[str]:
        if file not in self._lines:
            try:
                with open(file, encoding="utf-8") as source:
                    self._lines[file] = source.read().split("\n")
            except ours(OSError, ValueError):
                raise NotWoven("its source is not there") from None
        return self._lines[file]


def weave(function: FunctionType, given: Sequence[Given], sources: SourceFiles, beside_dynamo: bool) -> CodeType:
    """Return the function's code with PLACES woven in, those for torch.compile if it can be at work at all.

    Raises NotWoven if the source is not there or differs, or if the function would see what is woven in.
    """
    original = function.__code__
    names = getattr(original, "co_qualname", function.__qualname__).split(".")
    tree = _parsed(sources.block(original), names, _imported(function))
    if as_it_is(_compiled(tree, original, names)) != as_it_is(original):
        raise NotWoven("its source is not what runs")
    node: Any = tree
    while isinstance(node, (ast.Module, ast.ClassDef, ast.If)):
        node = node.body[0]
    if not isinstance(node, ast.FunctionDef):
        raise NotWoven("it has no definition of its own")
    _check(node, original)
    _rewrite(node, original, given, beside_dynamo)
    return _compiled(tree, original, names)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _imported(function: FunctionType) -> List[str]:
    """Return which of the names that it uses its module seems to have imported: from 3.11 on their methods are called by other code."""
    there, own = function.__globals__, function.__module__
    values = [(name, there.get(name)) for name in sorted(_names(function.__code__))]
    return [name for name, value in values if _is_imported(value, own)]


def _names(code: CodeType) -> Set[str]:
    inner = [_names(const) for const in code.co_consts if type(const) is CodeType]
    return set(code.co_names).union(*inner)


def _is_imported(value: Any, module: str) -> bool:
    if type(value) is FunctionType:
        return value.__module__ != module
    return type(value) is ModuleType or (is_class(value) and class_attribute(value, "__module__")[0] != module)


def _parsed(block: str, names: Sequence[str], imported: Sequence[str]) -> ast.Module:
    """Parse the lines as they are indented, below the classes by which private names are mangled."""
    above = ["class %s:" % name for name in names[:-1]]
    if not above and _depth(block):
        above = ["if 1:"]
    if "<locals>" in names or _depth(block) < len(above):
        raise NotWoven("it is a function within a function")
    head = "".join("%s%s\n" % (" " * depth, line) for depth, line in enumerate(above))
    try:
        tree = ast.parse(head + block)
    except ours(SyntaxError, ValueError):
        raise NotWoven("its source is not what runs") from None
    if imported:
        at = {"lineno": 1, "end_lineno": 1, "col_offset": 0, "end_col_offset": 0}
        tree.body.append(ast.Import(names=[ast.alias(name=name, asname=None, **at) for name in imported], **at))
    return tree


def _compiled(tree: ast.Module, original: CodeType, names: Sequence[str]) -> CodeType:
    """Compile the tree and return the code of the function in it, on the lines of the original."""
    try:
        code = compile(tree, original.co_filename, "exec", original.co_flags & _FUTURE, dont_inherit=True)
    except ours(SyntaxError, ValueError):
        raise NotWoven("its source is not what runs") from None
    for name in names:
        inner = [const for const in code.co_consts if type(const) is CodeType and const.co_name == name]
        if len(inner) != 1:
            raise NotWoven("its source is not what runs")
        code = inner[0]
    return _moved(code, original.co_firstlineno - code.co_firstlineno)


def _moved(code: CodeType, by: int) -> CodeType:
    """Return the code some lines further down."""
    consts = tuple(_moved(const, by) if type(const) is CodeType else const for const in code.co_consts)
    return code.replace(co_firstlineno=code.co_firstlineno + by, co_consts=consts)


def as_it_is(code: CodeType) -> Tuple[Any, ...]:
    """Return all that tells two codes apart; their == leaves out the lines, the columns and the full name in some versions."""
    lines = [getattr(code, name, None) for name in ("co_linetable", "co_exceptiontable", "co_qualname")]
    if lines[0] is None:
        lines[0] = code.co_lnotab
    inner = [as_it_is(const) for const in code.co_consts if type(const) is CodeType]
    return code, code.co_filename, code.co_stacksize, lines, inner


def _check(node: Any, code: CodeType) -> None:
    """Refuse a function that would see our names, or that can leave a return of its own by another way."""
    if not {_TOKEN, _RESULT, _HOOK}.isdisjoint(code.co_varnames + code.co_names):
        raise NotWoven("somebody has woven into it before")
    called = _SHOWS_NAMES.intersection(code.co_names)
    if called and any(isinstance(inner, ast.Name) and inner.id in called for inner in ast.walk(node)):
        raise NotWoven("it looks at its own names")
    for inner in _within(node.body):
        if any(isinstance(last, _ENDS) for last in _within(getattr(inner, "finalbody", []))):
            raise NotWoven("it returns twice")


def _within(statements: Sequence[ast.stmt]) -> List[ast.stmt]:
    """Return these statements and those in them, without those of inner functions."""
    inside = list(statements)
    for statement in inside:  # It grows.
        for block in _blocks(statement):
            inside.extend(block)
    return inside


def _blocks(statement: Any) -> List[List[ast.stmt]]:
    if isinstance(statement, _SCOPES):
        return []
    blocks: List[List[ast.stmt]] = []
    for part in (statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        blocks.extend(getattr(part, name, []) for name in _STATEMENTS)
    return [block for block in blocks if block]


class _Place:
    """Makes nodes at one line."""

    def __init__(self, line: int) -> None:
        self._at: Dict[str, Any] = {"lineno": line, "end_lineno": line, "col_offset": 0, "end_col_offset": 0}

    def load(self, name: str) -> ast.expr:
        return ast.Name(id=name, ctx=ast.Load(), **self._at)

    def constant(self, value: Any) -> ast.expr:
        return ast.Constant(value=value, kind=None, **self._at)

    def store(self, name: str, value: ast.expr) -> ast.stmt:
        return ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store(), **self._at)], value=value, **self._at)

    def call(self, hook: str, *args: ast.expr) -> Any:
        """Call a constant: by way of a name, as a call of a text is warned of while it is compiled."""
        function = ast.NamedExpr(target=ast.Name(id=_HOOK, ctx=ast.Store(), **self._at), value=self.constant(hook), **self._at)
        return ast.Call(func=function, args=list(args), keywords=[], **self._at)

    def does(self, hook: str, *args: ast.expr) -> ast.stmt:
        return ast.Expr(value=self.call(hook, *args), **self._at)

    def starred(self, name: str) -> ast.expr:
        return ast.Starred(value=self.load(name), ctx=ast.Load(), **self._at)

    def keyword(self, name: Optional[str], value: str) -> ast.keyword:
        return ast.keyword(arg=name, value=self.load(value), **self._at)

    def returns(self, value: ast.expr) -> ast.stmt:
        return ast.Return(value=value, **self._at)

    def only_if(self, condition: ast.expr, *body: ast.stmt) -> ast.stmt:
        return ast.If(test=condition, body=list(body), orelse=[], **self._at)

    def guarded(self, body: List[ast.stmt], *handler: ast.stmt) -> ast.stmt:
        """Return a try statement whose one clause ends by raising again what it has caught."""
        again = [*handler, ast.Raise(exc=None, cause=None, **self._at)]
        clause = ast.ExceptHandler(type=None, name=None, body=again, **self._at)
        return ast.Try(body=body, handlers=[clause], orelse=[], finalbody=[], **self._at)


def _rewrite(node: Any, code: CodeType, given: Sequence[Given], beside_dynamo: bool) -> None:
    """Weave the calls into the definition of a function."""
    documented = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
    rest = node.body[len(documented) :]
    first, last = _Place(node.lineno), _Place(node.body[-1].lineno)
    _returns(rest)
    begun = first.call(BEGIN, *[_argument(first, code, piece) for piece in given])
    twin = [_twin(first, code)] if beside_dynamo else []
    inside = [first.store(_TOKEN, begun), *twin, *rest, last.does(END, last.load(_TOKEN), last.constant(None))]
    failed = first.guarded([first.does(ERROR, first.load(_TOKEN))], first.does(CUT))
    node.body = [*documented, first.store(_TOKEN, first.constant(None)), first.guarded(inside, failed)]


def _argument(place: _Place, code: CodeType, piece: Given) -> ast.expr:
    if type(piece) is not str:
        return place.constant(piece)
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    name = next((name for name in piece.split() if name in arguments), None)
    return place.constant(None) if name is None else place.load(name)


def _twin(place: _Place, code: CodeType) -> ast.stmt:
    """Call the twin instead if torch.compile asks for each frame."""
    names, plain = code.co_varnames, code.co_argcount
    rest = list(names[plain + code.co_kwonlyargcount :])
    called = place.call(TWIN, *map(place.load, names[:plain]))
    if code.co_flags & inspect.CO_VARARGS:
        called.args.append(place.starred(rest.pop(0)))
    called.keywords = [place.keyword(name, name) for name in names[plain : plain + code.co_kwonlyargcount]]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        called.keywords.append(place.keyword(None, rest[0]))
    returned: List[ast.stmt] = [place.returns(called)]
    _returns(returned)
    return place.only_if(place.call(COMPILES), place.guarded(returned, place.does(LEAVE)))


def _returns(block: List[ast.stmt]) -> None:
    """Put a call before each return."""
    for at in reversed(range(len(block))):
        statement = block[at]
        for inner in _blocks(statement):
            _returns(inner)
        if isinstance(statement, ast.Return):
            here = _Place(statement.lineno)
            result = statement.value or here.constant(None)
            statement.value = here.load(_RESULT)
            block[at : at + 1] = [here.store(_RESULT, result), here.does(END, here.load(_TOKEN), here.load(_RESULT)), statement]
