"""Weaves calls into functions of many shapes, and prints how each differs from what it was: standard library alone, for each Python.

The folder of ddp_probe is the argument. What is woven is compared by its results, exceptions, tracebacks, warnings, frames and lines.
"""

# The shapes are of every kind, also of those that nobody should write.
# ruff: noqa: B012, D102, D207, D209, E701, PIE800, PLC3002, PLW0120, SIM107

import dis
import json
import os
import sys
import traceback
import types
import warnings

PACKAGE = sys.argv[1]
sys.path.insert(0, os.path.dirname(PACKAGE))
for name, folder in (("traced", "traced"), ("traced.patching", "traced/patching")):  # Without what these import from elsewhere.
    module = types.ModuleType("ddp_probe." + name)
    module.__path__ = [os.path.join(PACKAGE, folder)]
    sys.modules["ddp_probe." + name] = module

from ddp_probe.traced.patching import woven  # noqa: E402

LEVELS = range(1, 4)
# fmt: off


def look():
    """Return what code sees of the stack."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for level in LEVELS:
            warnings.warn("look", stacklevel=level)
    frames = [sys._getframe(level) for level in LEVELS]
    return [(one.filename, one.lineno) for one in told], [(frame.f_lineno, frame.f_code.co_name) for frame in frames]


def decorated(function):
    """Leave the function as it is."""
    return function


class Shapes:
    """Functions of many shapes; each is called with 0, 1 and 2."""

    def __hidden(self, x):
        return look(), x

    @decorated
    @decorated
    def private(self, x, *rest, named=3, **others):
        """Read a private name,
with a docstring that is not indented."""
        return (
            self.__hidden(x),
            rest,
            named,
            others,
        )

    def falls_through(self, x):
        """Return nothing."""
        if x:
            self.seen = look()

    def loops(self, x):
        for each in range(3):
            if each == x:
                return look()
        else:
            return "none"

    def cleans_up(self, x):
        try:
            if x == 1:
                return look()
            return [1][x]
        except IndexError as exc:
            return str(exc), look()
        finally:
            self.last = x

    def passes_on(self, x):
        with warnings.catch_warnings():
            try:
                return 1 // x
            except ZeroDivisionError as exc:
                raise ValueError(
                    "no"
                ) from exc

    def inner(self, x):
        def within(y=x):
            return look(), y

        return within(), [z for z in range(x) if (lambda: z)()], {**{"a": x}}

    def one_line(self, x): return look() if x else None

    def deep(self, x):
        return self.deep(x - 1) if x else (look(), 1 // x)

    def assigns(self, /, x: "int" = 5) -> "int":
        if (y := x) > 1: return y
        del x
        return look()


# fmt: on


def frames_of(exc):
    """Return what a traceback shows, with the columns if this Python has them."""
    found = []
    while exc is not None:
        walked = traceback.walk_tb(exc.__traceback__)
        codes = [(frame.f_code, line, step.tb_lasti) for (frame, line), step in zip(walked, steps(exc.__traceback__))]
        found += [(code.co_name, line, columns(code, at)) for code, line, at in codes]
        exc = exc.__context__
    return found


def steps(tb):
    """Yield the entries."""
    while tb is not None:
        yield tb
        tb = tb.tb_next


def columns(code, at):
    """Return the columns of an instruction."""
    return list(code.co_positions())[at // 2][2:] if hasattr(code, "co_positions") else None


def outcome(name, x):
    """Call one and return what came of it."""
    shapes = Shapes()
    try:
        return repr(getattr(shapes, name)(x)), repr(sorted(vars(shapes).items()))
    except (ValueError, ZeroDivisionError) as exc:
        return type(exc).__name__, repr(frames_of(exc))


def outcomes(name):
    """Call it with each argument, always from this line."""
    return [outcome(name, x) for x in range(3)]


calls = []


def begin(*given):
    """Note that it begins."""
    calls.append("begin")
    return calls


def end(token, result):
    """Note that it ends."""
    assert token is calls
    calls.append("end")


def error(token):
    """Note that it fails."""
    assert token is calls
    calls.append("error")


PUT_IN = dict(zip(woven.PLACES, (begin, end, error, lambda: None, lambda: None, None, None)))
different, count = [], 0
for beside_dynamo in (False, True):
    for name, function in list(vars(Shapes).items()):
        if type(function) is not types.FunctionType or name.startswith("_Shapes"):
            continue
        count += 1
        before, original = outcomes(name), function.__code__
        for _ in range(200):  # Until the interpreter has put its quick instructions there.
            outcome(name, 1)
        code = woven.weave(function, [1, "x y", "named", "missing", None], woven.SourceFiles(), beside_dynamo)
        function.__code__ = code.replace(co_consts=tuple(PUT_IN.get(one, one) if type(one) is str else one for one in code.co_consts))
        calls.clear()
        after = outcomes(name)
        opened = calls.count("begin")
        if before != after:
            different.append([name, before, after])
        if opened < 3 or opened != calls.count("end") + calls.count("error"):
            different.append([name, calls[:]])
        lines = {line for _, line in dis.findlinestarts(code) if line}
        if not lines >= {line for _, line in dis.findlinestarts(original) if line}:
            different.append([name, sorted(lines)])
        if (code.co_firstlineno, code.co_name, code.co_filename, code.co_flags) != (
            original.co_firstlineno,
            original.co_name,
            original.co_filename,
            original.co_flags,
        ):
            different.append([name, "names"])
        function.__code__ = original


def refusals():
    """Return why nothing is woven into functions that are not what their source says, or would see it."""

    def why(function, code=None):
        function = types.FunctionType(code or function.__code__, globals())
        function.__qualname__ = function.__name__
        try:
            woven.weave(function, [], woven.SourceFiles(), False)
            return ""
        except woven.NotWoven as exc:
            return str(exc)

    changed = look.__code__.replace(co_consts=tuple("other" if one == "look" else one for one in look.__code__.co_consts))
    return [
        why(look),
        why(look, changed),
        why(look, look.__code__.replace(co_firstlineno=look.__code__.co_firstlineno + 1)),
        why(look, look.__code__.replace(co_filename="nowhere.py")),
        why(sees_its_names),
        why(returns_twice),
    ]


def sees_its_names():
    """Return them."""
    return locals()


def returns_twice():
    """Return once more on the way out."""
    try:
        return 1
    finally:
        return 2


print(json.dumps([count, different, refusals()]))
