"""Watches a Python function by giving it another code object: the function itself, and so each name, alias and table that holds it, stays.

The new code is the original with calls of `begin`, `end` and `error` woven in. If torch.compile knows a function by its identity or skips it by its
file, it goes on to do so.
"""

import inspect
import sys
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from ddp_probe.shared.ours import must_pass, raise_as_raised, traceback_of
from ddp_probe.shared.overflow import FRAGILE, forgotten
from ddp_probe.shared.own_code import foreign
from ddp_probe.traced.patching.call import Target
from ddp_probe.traced.patching.certificate import Entry
from ddp_probe.traced.patching.compiler import dynamo, hide
from ddp_probe.traced.patching.frames import clean_exception, is_our_frame, shed
from ddp_probe.traced.patching.slot import MISSING, locate
from ddp_probe.traced.patching.woven import PLACES, Given, NotWoven, SourceFiles, weave
from ddp_probe.traced.patching.wrapper import without_us

_NOT_PLAIN = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
INLINED = "_torchdynamo_inline"
"""What torch.compile inlines in place of a function that has this attribute: it then traces the original, as if nobody had been here."""


class Hooks(NamedTuple):
    """What is called around the original: `begin` with what is given, `end` and `error` with what it returned."""

    begin: Callable[..., Any]
    end: Callable[[Any, Any], None]
    error: Callable[..., None]


class Swap:
    """One function with its code swapped."""

    def __init__(self, target: Target, function: types.FunctionType, code: types.CodeType) -> None:
        self.target = target
        self.function = function
        self.original = function.__code__
        self.code = code
        self.shown: Any = None

    def put_in(self) -> None:
        """Give the function the new code, unless that has been done, or somebody else has given it theirs."""
        if self.function.__code__ is self.original:
            if self.shown is not None:
                vars(self.function)[INLINED] = self.shown
            self.function.__code__ = self.code


def innermost(target: Target) -> Optional[types.FunctionType]:
    """Return the function below every decorator; None if the target is not there, or is somebody's own function."""
    located = locate(target)
    if isinstance(located, str):
        return None
    function: Any = without_us(located[1])
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


def woven_swap(target: Target, function: types.FunctionType, hooks: Hooks, given: Sequence[Given], sources: SourceFiles) -> Swap:
    """Return a swap that is yet to be put in.

    Raises NotWoven, with the reason, if it is not a plain function, or its source is not known for certain.
    """
    code = function.__code__
    if code.co_flags & _NOT_PLAIN or code.co_freevars:
        raise NotWoven("it is not a plain function")
    twin = twin_of(function)
    swap = Swap(target, function, _code(function, twin, hooks, given, sources))
    if "torch._C._dynamo" in sys.modules and INLINED not in vars(function):
        swap.shown = twin
    return swap


def leave(code: types.CodeType) -> None:
    """Take the frame with this code out of the traceback of the exception that is leaving it."""
    exc = sys.exc_info()[1]
    try:
        raise_as_raised(exc)
        if exc is not None:
            shed(exc, code)
    except RecursionError as full:
        try:
            passes = must_pass(full)
        except RecursionError:
            passes = FRAGILE and not forgotten()
        if passes:
            raise


def twin_of(function: types.FunctionType) -> types.FunctionType:
    """Return a copy of this function as it is now."""
    twin = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    twin.__kwdefaults__ = function.__kwdefaults__
    twin.__module__, twin.__qualname__ = function.__module__, function.__qualname__
    return twin


def _code(function: types.FunctionType, twin: types.FunctionType, hooks: Hooks, given: Sequence[Given], sources: SourceFiles) -> types.CodeType:
    codes: List[types.CodeType] = []

    def error(token: Any) -> None:
        exc = sys.exc_info()[1]
        try:
            hooks.error(token)
            raise_as_raised(exc)
        except RecursionError as exc:
            try:
                passes = must_pass(exc)
            except RecursionError:
                passes = FRAGILE and not forgotten()
            if passes:
                raise
        except BaseException as other:
            raise_as_raised(other)
            raise
        finally:
            cut()

    def of_twin() -> None:
        leave(codes[0])

    for called in (*hooks, error, cut, of_twin):
        hide(getattr(called, "__code__", None))
    compiles = getattr(dynamo(), "get_eval_frame_callback", None)
    code = weave(function, given, sources, compiles is not None)
    values: Dict[Any, Any] = dict(zip(PLACES, (hooks.begin, hooks.end, error, cut, compiles, twin, of_twin)))
    constants = [values.get(const, const) if type(const) is str else const for const in code.co_consts]
    codes.append(code.replace(co_consts=tuple(constants)))
    hide(codes[0], and_below=False)
    return codes[0]


def cut() -> None:
    """Take our frames out of the traceback of the exception that is being handled, if ours is the next below the watched function."""
    exc = sys.exc_info()[1]
    entry = None if exc is None else traceback_of(exc)
    try:
        if entry is not None and entry.tb_next is not None and is_our_frame(entry.tb_next.tb_frame.f_code):
            clean_exception(exc)
    except RecursionError as full:
        try:
            passes = must_pass(full)
        except RecursionError:
            passes = FRAGILE and not forgotten()
        if passes:
            raise


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
