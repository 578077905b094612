"""Watches a Python function by giving it another code object: the function itself, and so each name, alias and table that holds it, stays.

The new code has the arguments, the name, the file and the first line of the original, calls `begin` with some of its arguments, then the original
code with all of them, then `end` or `error`. If torch.compile knows a function by its identity or skips it by its file, it goes on to do so.
"""

import ast
import inspect
import sys
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ddp_probe.shared.own_code import foreign
from ddp_probe.traced.patching.call import Target
from ddp_probe.traced.patching.certificate import Entry
from ddp_probe.traced.patching.frames import shed
from ddp_probe.traced.patching.slot import MISSING, locate
from ddp_probe.traced.patching.wrapper import without_us

_NOT_PLAIN = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
INLINED = "_torchdynamo_inline"
"""What torch.compile inlines in place of a function that has this attribute: it then traces the original, as if nobody had been here."""

# The constants are put in after compiling: a call of a constant would be warned of, and a global name would be the module's.
_BODY = """
_ddp_probe_token = None
_ddp_probe_begin = %r
_ddp_probe_call = %r
_ddp_probe_end = %r
_ddp_probe_error = %r
try:
    _ddp_probe_token = _ddp_probe_begin(%s)
    _ddp_probe_result = _ddp_probe_call(%s)
    _ddp_probe_end(_ddp_probe_token, _ddp_probe_result)
except BaseException:
    _ddp_probe_error(_ddp_probe_token)
    raise
return _ddp_probe_result
"""
_PLACES = tuple("ddp_probe: %s" % name for name in ("begin", "call", "end", "error"))


class Hooks(NamedTuple):
    """What is called around the original. `begin` gets the named arguments, None for one that this function does not have, after the constants."""

    begin: Callable[..., Any]
    end: Callable[[Any, Any], None]
    error: Callable[[Any], None]


class Swap:
    """One function with its code swapped."""

    def __init__(self, target: Target, function: types.FunctionType, code: types.CodeType) -> None:
        self.target = target
        self.function = function
        self.original = function.__code__
        self.code = code
        self.shown: Any = None


def innermost(target: Target) -> Optional[types.FunctionType]:
    """Return the function below every decorator; None if the target is not there, or is somebody's own function."""
    found = locate(target)
    if isinstance(found, str):
        return None
    function: Any = without_us(found[1])
    while type(function) in (classmethod, staticmethod):
        function = function.__func__
    for _ in range(20):
        further = vars(function).get("__wrapped__", MISSING) if type(function) is types.FunctionType else MISSING
        if further is MISSING:
            break
        function = without_us(further)
    if type(function) is not types.FunctionType or not foreign(function.__code__.co_filename):
        return None
    return function


def swap(target: Target, function: types.FunctionType, hooks: Hooks, constants: Sequence[int], wanted: Sequence[Any]) -> Optional[Swap]:
    """Swap the function's code; None if it cannot be taken the place of: a generator, or a function with variables of an outer one."""
    code = function.__code__
    if code.co_flags & _NOT_PLAIN or code.co_freevars:
        return None
    call = _twin(function)
    made = Swap(target, function, _code(function, call, hooks, constants, wanted))
    if "torch._C._dynamo" in sys.modules and INLINED not in vars(function):
        made.shown = vars(function)[INLINED] = call
    function.__code__ = made.code
    return made


def hide(code: Optional[types.CodeType], and_below: bool = True) -> None:
    """Tell torch.compile to let the frames of our code, and of what it calls, run as they are; it would compile or report them."""
    dynamo: Any = getattr(sys.modules.get("torch._C._dynamo"), "eval_frame", None)
    if dynamo is None or code is None:
        return
    if hasattr(dynamo, "set_code_exec_strategy"):
        skip, default = dynamo._FrameAction.SKIP, dynamo._FrameAction.DEFAULT
        dynamo.set_code_exec_strategy(code, dynamo._FrameExecStrategy(skip, skip if and_below else default))
    elif hasattr(dynamo, "skip_code"):  # torch before 2.7
        dynamo.skip_code(code)


def leave(code: types.CodeType) -> None:
    """Take the frame with this code out of the traceback of the exception that is leaving it."""
    exc = sys.exc_info()[1]
    if exc is not None:
        shed(exc, code)


def _arguments(code: types.CodeType) -> Tuple[List[str], List[str], List[str], List[str], str, str]:
    """Return the names: positional only, either, keyword only, all of these, *args, **kwargs."""
    names = list(code.co_varnames)
    only, plain = code.co_posonlyargcount, code.co_argcount
    total = plain + code.co_kwonlyargcount
    rest = names[total:]
    star = rest.pop(0) if code.co_flags & inspect.CO_VARARGS else ""
    stars = rest.pop(0) if code.co_flags & inspect.CO_VARKEYWORDS else ""
    return names[:only], names[only:plain], names[plain:total], names[:total], star, stars


def _twin(function: types.FunctionType) -> types.FunctionType:
    """Return a copy of this function as it is now."""
    twin = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    twin.__kwdefaults__ = function.__kwdefaults__
    twin.__module__, twin.__qualname__ = function.__module__, function.__qualname__
    return twin


def _code(function: types.FunctionType, call: types.FunctionType, hooks: Hooks, constants: Sequence[int], wanted: Sequence[Any]) -> types.CodeType:
    original = function.__code__
    made: List[types.CodeType] = []

    def error(token: Any) -> None:
        hooks.error(token)
        leave(made[0])

    for called in (*hooks, error):
        hide(getattr(called, "__code__", None))
    compiled = _compiled(original, constants, wanted)
    values: Dict[Any, Any] = dict(zip(_PLACES, (hooks.begin, call, hooks.end, error)))
    consts = tuple(values.get(const, const) if type(const) is str else const for const in compiled.co_consts)
    names: Dict[str, Any] = {"co_qualname": original.co_qualname} if hasattr(original, "co_qualname") else {}
    made.append(compiled.replace(co_consts=consts, co_name=original.co_name, **names))
    hide(made[0], and_below=False)
    return made[0]


def _compiled(original: types.CodeType, constants: Sequence[int], wanted: Sequence[Any]) -> types.CodeType:
    """Compile on the first line of the original, so that its source is what inspect finds, in a fresh module that is thrown away."""
    only, either, keyword, names, star, stars = _arguments(original)
    given = [str(constant) for constant in constants] + [_chosen(one, names) for one in wanted]
    passed = [*only, *either, *(["*" + star] if star else []), *("%s=%s" % (name, name) for name in keyword), *(["**" + stars] if stars else [])]
    body = _BODY % (*_PLACES, ", ".join(given), ", ".join(passed))
    head = ", ".join(
        [
            *only,
            *(["/"] if only else []),
            *either,
            *(["*" + star] if star else ["*"] if keyword else []),
            *keyword,
            *(["**" + stars] if stars else []),
        ]
    )
    tree = ast.parse("def watched(%s):\n%s" % (head, "\n".join("    " + line for line in body.splitlines())))
    node: Any
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = original.co_firstlineno
            node.col_offset = node.end_col_offset = 0
    module = compile(tree, original.co_filename, "exec", dont_inherit=True, optimize=0)
    return next(const for const in module.co_consts if isinstance(const, types.CodeType))


def _chosen(one: Any, names: Sequence[str]) -> str:
    """Return the source of one argument of begin: the first of these names that the function has, a constant, or None."""
    if type(one) is not str:
        return repr(one)
    return next((name for name in one.split() if name in names), "None")


# Undo of a code swap: the original code goes back into the function, checked by identity.


def put_back(swap: Swap) -> Entry:
    """Put the original code back, unless somebody else has put in theirs."""
    function, label = swap.function, str(swap.target)
    if swap.shown is not None and vars(function).get(INLINED) is swap.shown:
        del vars(function)[INLINED]
    if function.__code__ is swap.code:
        function.__code__ = swap.original
        return Entry(swap.target, label, "code", function.__code__ is swap.original, "The original code is back.")
    if function.__code__ is swap.original:
        return Entry(swap.target, label, "code", True, "Somebody else put the original code back.")
    return Entry(swap.target, label, "overwritten", False, "Somebody put other code there, which stays.")
