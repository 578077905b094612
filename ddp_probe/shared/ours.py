"""Distinguishes exceptions of our code from those that the job raises while our code runs.

A signal handler runs between two bytecodes of any active Python code, which may be ours. Its exceptions, such as torchelastic's
SignalException or an alarm's timeout, have the handler's frame below ours in the traceback. They belong to the job and must reach it.
So every `except` of ours in a traced process uses this check.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed lacks it; the module signal would bring enum to each start of an interpreter
import os
import sys

from ddp_probe.shared.overflow import FRAGILE, forgotten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any, Callable, List, Optional, Sequence, Tuple, Type, TypeVar

    Kind = TypeVar("Kind", bound=BaseException)

# From code objects, not from __file__, so that both sides of a comparison have the same spelling.
_PACKAGE = os.path.dirname(os.path.dirname((lambda: None).__code__.co_filename)) + os.sep
_STANDARD = os.path.dirname(os.path.dirname(os.__file__)) + os.sep
_OTHERS = ("site-packages", "dist-packages")

# Past the attributes that a class of the job may define.
traceback_of: Callable[[BaseException], Optional[TracebackType]] = BaseException.__dict__["__traceback__"].__get__
_cause_of: Callable[[BaseException], Optional[BaseException]] = BaseException.__dict__["__cause__"].__get__
_CONTEXT: Any = BaseException.__dict__["__context__"]
_module_of: Callable[[type], Any] = type.__dict__["__module__"].__get__
_bases_of: Callable[[type], Any] = type.__dict__["__mro__"].__get__
_contents_of: Callable[[type], Any] = type.__dict__["__dict__"].__get__
_FUNCTION = type(lambda: None)


def ours(*kinds: Type[Kind]) -> Tuple[Type[Kind], ...]:
    """Return the classes for an except clause: none if the current exception is the job's."""
    exc = sys.exc_info()[1]
    if exc is None:
        return kinds
    return () if is_the_jobs(exc) or _stays(exc) else kinds


class suppress:  # noqa: N801  # replaces contextlib.suppress, which would also suppress the job's exceptions
    """Suppress these exceptions if our code raised them."""

    def __init__(self, *kinds: Type[BaseException]) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Optional[Type[BaseException]], exc: Optional[BaseException], trace: Optional[TracebackType]) -> bool:
        return kind is not None and exc is not None and issubclass(kind, self._kinds) and not is_the_jobs(exc) and not _stays(exc)


_METHOD: Any = type(suppress().__enter__)


def is_the_jobs(exc: BaseException) -> bool:
    """Return whether an exception was raised neither by our code nor by code that ours called."""
    innermost = _innermost(exc)
    if innermost is None:
        return False
    if passed_a_generator(exc) is not None:
        return True
    if _is_ours(innermost) and _is_a_class_of_the_job(type(exc)):
        return True  # Another thread injected it into our code (PyThreadState_SetAsyncExc), which leaves no frame.
    return not _is_all_ours(exc) and raised_by_handler(exc)


def must_pass(exc: RecursionError) -> bool:
    """Return whether a RecursionError that was raised in our code has to reach the job: a signal handler has raised it, or the note of it stays.

    If the stack is full, there may be no room for this call either. So the clauses of the hot path look like this:

        except RecursionError as exc:
            try:
                passes = must_pass(exc)
            except RecursionError:
                passes = FRAGILE and not forgotten()
            if passes:
                raise
    """
    return is_a_handlers_overflow(exc) or _stays(exc)


def is_a_handlers_overflow(exc: RecursionError) -> bool:
    """Return whether the job has raised it; a stack that has no room left to ask is full, and has raised it itself."""
    try:
        return is_the_jobs(exc)
    except RecursionError:
        return False


def _stays(exc: BaseException) -> bool:
    """Return whether the interpreter would abort later on if this exception were held back here."""
    return FRAGILE and issubclass(type(exc), RecursionError) and not forgotten()


def passed_a_generator(exc: BaseException) -> Optional[BaseException]:
    """Return the StopIteration that a signal handler has raised in a generator, if Python has put this RuntimeError in its place."""
    cause = _cause_of(exc) if type(exc) is RuntimeError else None
    return cause if cause is not None and issubclass(type(cause), StopIteration) and raised_by_handler(cause) else None


def raise_as_raised(exc: Optional[BaseException]) -> None:
    """Raise what a signal handler has raised, as it was, if this RuntimeError has taken its place below our code; for where our code ends."""
    cause = None if exc is None else passed_a_generator(exc)
    if exc is None or cause is None or not _passed_us(exc):
        return
    context = _CONTEXT.__get__(cause)
    try:
        raise cause
    finally:
        _CONTEXT.__set__(cause, context)


def raised_by_handler(exc: BaseException) -> bool:
    """Return whether a signal handler raised it, in any code."""
    registered = _handlers()
    above, step = None, traceback_of(exc)
    while step is not None:
        if above is not None and not _is_ours(step.tb_frame) and _handles(step.tb_frame, above, registered):
            return True
        above, step = step.tb_frame, step.tb_next
    return False


def _innermost(exc: BaseException) -> Optional[FrameType]:
    frame, step = None, traceback_of(exc)
    while step is not None:
        frame, step = step.tb_frame, step.tb_next
    return frame


def _is_all_ours(exc: BaseException) -> bool:
    step = traceback_of(exc)
    while step is not None and _is_ours(step.tb_frame):
        step = step.tb_next
    return step is None


def _passed_us(exc: BaseException) -> bool:
    step = traceback_of(exc)
    while step is not None and not _is_ours(step.tb_frame):
        step = step.tb_next
    return step is not None


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_PACKAGE)


def _handles(frame: FrameType, above: FrameType, registered: List[Any]) -> bool:
    """Return whether a frame is a signal handler: it received the interrupted frame as an argument, or its code is registered as a handler."""
    for value in list(frame.f_locals.values()):
        if value is above or (type(value) is tuple and _holds(value, above)):
            return True
    return _holds(registered, frame.f_code)


def _holds(values: Sequence[Any], wanted: Any) -> bool:
    """Return whether this very object is among the values, without asking one of them."""
    for one in values:  # noqa: SIM110  # No generator, in which a handler may raise.
        if one is wanted:
            return True
    return False


def _handlers() -> List[Any]:
    """Return the code of each currently registered handler."""
    found = []
    for number in range(1, _signal.NSIG):
        try:
            handler: Any = _signal.getsignal(number)
        except ValueError:  # The C library reserves some numbers.
            continue
        found.append(_code(handler))
    return [code for code in found if code is not None]


def _code(handler: Any) -> Any:
    """Return the code of a handler without asking an object of the job's: of a function, a method, a partial, or of its class's __call__."""
    partial = getattr(sys.modules.get("functools"), "partial", None)
    while type(handler) is partial:
        handler = handler.func
    if type(handler) is _METHOD:
        handler = handler.__func__
    if type(handler) is not _FUNCTION:
        called = [contents["__call__"] for contents in map(_contents_of, _bases_of(type(handler))) if "__call__" in contents]
        handler = called[0] if called else None
    return handler.__code__ if type(handler) is _FUNCTION else None


def _is_a_class_of_the_job(kind: Type[BaseException]) -> bool:
    module = _module_of(kind)
    if type(module) is not str:
        return True
    if module == "builtins" or module.startswith("ddp_probe."):
        return False
    file: Any = getattr(sys.modules.get(module), "__file__", None)
    if type(file) is not str:
        return module == "__main__"
    return not file.startswith((_STANDARD, _PACKAGE)) and not [part for part in _OTHERS if part in file]
