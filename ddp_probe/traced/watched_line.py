"""Watches one line of the job for DDP_PROBE_WATCH=FILE:LINE: each time it is reached, the values of its statement's names are written.

From Python 3.12 on, sys.monitoring tells when a line of one code object begins. Before, the function that holds the line gets another code object,
made of its own source with one call more (line_weaving.py). Other code of the job runs as it is.
"""

import ast
import functools
import gc
import os
import sys
from types import CodeType, FrameType, FunctionType
from typing import Any, Callable, Iterator, List, Optional

from ddp_probe.shared import schema, settings
from ddp_probe.shared.ours import ours
from ddp_probe.traced.facts.call_site import site
from ddp_probe.traced.facts.frame_variables import look_at_frame
from ddp_probe.traced.facts.plain_values import named_values
from ddp_probe.traced.patching import Entry, Target
from ddp_probe.traced.patching.code_swap import INLINED, twin_of
from ddp_probe.traced.patching.compiler import hide
from ddp_probe.traced.patching.guard import guard
from ddp_probe.traced.patching.line_weaving import WatchedSource, first_line, names_of, statement_at, with_call, with_inner
from ddp_probe.traced.patching.woven import NotWoven, as_it_is
from ddp_probe.traced.session import Session

_NAME = "watched-line"
_EACH = 1000
"""This many times each is written; then the times that are powers of two."""
_monitoring: Any = getattr(sys, "monitoring", None)
_TOOLS = (4, 3, 5)
"""The numbers of tools that no debugger, profiler or coverage has by convention."""


class WatchedLine:
    """The one line that DDP_PROBE_WATCH names, in this process."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._asked = settings.get(settings.WATCH)
        path, _, line = self._asked.rpartition(":")
        self._path, self._line = os.path.normpath(path), int(line)
        self._names: List[str] = []
        self._times = 0
        self._process = os.getpid()
        self._way: Any = None

    def look_for_it(self) -> None:
        """Begin to watch the line if its code is there by now; what has not been imported yet is looked for again."""
        if not self._asked or self._way is not None or self._process != os.getpid():
            return
        module = self._running_module()
        functions = [] if module is not None else self._functions()
        files = [module.f_code.co_filename] if module is not None else [function.__code__.co_filename for function in functions]
        if files:
            self._try(self._watch, sorted(set(files)), module, functions)

    def say_if_not_found(self) -> None:
        """Say that no code of the file has been seen, once the ranks meet."""
        if self._asked and self._way is None and self._process == os.getpid():
            self._warn("no code of this file has been imported by now")

    def _try(self, watch: Callable[..., None], *arguments: Any) -> None:
        try:
            watch(*arguments)
        except ours(NotWoven) as why:
            self._way = _Nothing()
            self._warn(str(why))

    def _warn(self, why: str) -> None:
        if not self._session.process.rank:
            self._session.recorder.warn("DDP_PROBE_WATCH: %s is not watched: %s." % (self._asked, why))

    def _watch(self, files: List[str], module: Optional[FrameType], functions: List[FunctionType]) -> None:
        if len(files) > 1:
            raise NotWoven("%d files have this name: write more of the path" % len(files))
        source = WatchedSource(files[0])
        statement = statement_at(source.tree, self._line)
        if statement is None:
            raise NotWoven("there is no statement")
        self._names = names_of(statement)
        if _monitoring is not None:
            codes = [module.f_code] if module is not None else [function.__code__ for function in functions]
            self._way = _Monitored(codes, self._line, self._reached)
            return
        code = source.function_at(self._line)
        if code is None:
            raise NotWoven("it is not in a function, and Python before 3.12 cannot watch the code of a module that runs")
        self._way = _Swapped(code, with_call(source, self._line, self._hook))
        if module is None:
            self._way.put_in()
        else:
            put_in = functools.partial(self._try, self._way.put_in)
            _OnceDefined(module, source.definition_at(self._line), put_in).begin()

    def _running_module(self) -> Optional[FrameType]:
        """Return the frame of the file's own code if that runs: its functions are yet to be defined."""
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_name == "<module>" and self._is_file(frame.f_code.co_filename):
                return frame
            frame = frame.f_back
        return None

    def _functions(self) -> List[FunctionType]:
        """Return the functions of the file."""
        return [function for function in _all_functions() if self._is_file(function.__code__.co_filename)]

    def _is_file(self, file: str) -> bool:
        return file == self._path or file.endswith(os.sep + self._path)

    def _hook(self) -> None:
        """Take the place of a call in the job's function: it returns None, and raises nothing."""
        guard.run(_NAME, self._reached, sys._getframe(1))

    def _reached(self, frame: FrameType) -> None:
        if self._process != os.getpid():
            return
        self._times += 1
        times = self._times
        if times > _EACH and times & (times - 1):
            return
        look = look_at_frame(frame)
        values = named_values(self._names, look.variables, frame.f_globals)
        look.variables.clear()
        self._session.recorder.point(schema.LineReached(site=site(frame.f_code, self._line), times=times, values=values))

    def undo(self) -> List[Entry]:
        """Put the original code back."""
        way, self._way, self._asked = self._way, None, ""
        return way.undo() if way is not None else []


class _Nothing:
    """Nothing is watched, and nothing is to be put back."""

    def undo(self) -> List[Entry]:
        """Return no entry."""
        return []


class _Monitored:
    """A line watched by sys.monitoring: events of the code objects that hold it, and of no other."""

    def __init__(self, codes: List[CodeType], line: int, reached: Any) -> None:
        holding: List[CodeType] = []
        for outer in codes:
            holding += [code for code in with_inner(outer) if line in {at for _, _, at in code.co_lines()}]
        tool = next((number for number in _TOOLS if _monitoring.get_tool(number) is None), None)
        if not holding or tool is None:
            raise NotWoven("no code begins there" if not holding else "other tools have all numbers of sys.monitoring")
        self._tool, self._codes = tool, holding
        lines = _monitoring.events.LINE

        def on_line(_: CodeType, at: int) -> Any:
            if at != line:
                return _monitoring.DISABLE
            guard.run(_NAME, reached, sys._getframe(1))
            return None

        _monitoring.use_tool_id(tool, "ddp_probe")
        _monitoring.register_callback(tool, lines, on_line)
        for code in holding:
            _monitoring.set_local_events(tool, code, lines)

    def undo(self) -> List[Entry]:
        """Switch the events off and give the number back."""
        for code in self._codes:
            _monitoring.set_local_events(self._tool, code, 0)
        _monitoring.register_callback(self._tool, _monitoring.events.LINE, None)
        _monitoring.free_tool_id(self._tool)
        return []


class _Swapped:
    """A line watched by a call in the function that holds it."""

    def __init__(self, original: CodeType, code: CodeType) -> None:
        self._original, self._code = original, code
        self._functions: List[FunctionType] = []

    def put_in(self) -> None:
        """Give each function that has the original code the other one."""
        source = as_it_is(self._original)
        for function in _all_functions():
            code = function.__code__
            is_like = code.co_filename == self._original.co_filename and code.co_firstlineno == self._original.co_firstlineno
            if is_like and as_it_is(code) == source:
                vars(function).setdefault(INLINED, twin_of(function))
                function.__code__ = self._code
                self._functions.append(function)
                self._original = code
        hide(self._code, and_below=False)
        if not self._functions:
            raise NotWoven("its source is not what runs, or its function is not there")

    def undo(self) -> List[Entry]:
        """Put the original code back, unless somebody else has put in theirs."""
        entries = []
        for function in self._functions:
            target = Target(function.__module__, function.__qualname__)
            is_ours = function.__code__ is self._code
            shown = vars(function).get(INLINED)
            if getattr(shown, "__code__", None) is self._original:
                del vars(function)[INLINED]
            if is_ours:
                function.__code__ = self._original
            kind, why = ("code", "The original code is back.") if is_ours else ("overwritten", "Somebody put other code there, which stays.")
            entries.append(Entry(target, str(target), kind, function.__code__ is self._original, why))
        return entries


class _OnceDefined:
    """Calls something as soon as a module that runs has made a definition: until then, this thread is traced, in the module's own frame alone."""

    def __init__(self, module: FrameType, definition: ast.stmt, then: Any) -> None:
        self._module = module
        self._lines = range(first_line(definition), (definition.end_lineno or 0) + 1)
        self._then = then
        self._was_there = False

    def begin(self) -> None:
        """Trace, unless somebody else does."""
        if sys.gettrace() is not None:
            raise NotWoven("a debugger or another tracer is at work")
        if self._module.f_lineno > self._lines[-1]:
            self._then()
            return
        self._module.f_trace = self._in_module
        sys.settrace(_of_no_other)

    def _in_module(self, frame: FrameType, event: str, _: Any) -> Any:
        is_there = frame.f_lineno in self._lines
        if event == "return" or (self._was_there and not is_there):
            sys.settrace(None)
            frame.f_trace = None
            guard.run(_NAME, self._then)
            return None
        self._was_there = self._was_there or is_there
        return self._in_module


def _of_no_other(frame: FrameType, event: str, _: Any) -> None:
    """Trace no other function."""


def _all_functions() -> Iterator[FunctionType]:
    return (thing for thing in gc.get_objects() if type(thing) is FunctionType)
