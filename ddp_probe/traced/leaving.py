"""How the program is left, and with which code.

The interpreter tells nobody of SystemExit: no hook is called for it, and it is gone when functions at exit run.
So sys.exit, os._exit, the exit and quit of the module site, and the last step of multiprocessing are noted on their
way. The outermost frame is kept: it shows afterwards whether it returned or was left by an exception. A
`raise SystemExit` of the job's own passes none of these, and its line is not known.
"""

import functools
import os
import sys
import threading
from types import FrameType
from typing import Any, Callable, Dict, Optional, Sequence

from ddp_probe.shared.ours import is_a_handlers_overflow
from ddp_probe.shared.overflow import FRAGILE, forgotten
from ddp_probe.shared.own_code import foreign
from ddp_probe.shared.schema import Failure, ProcessExit, Site
from ddp_probe.traced.facts.call_site import call_path, module_of, site
from ddp_probe.traced.facts.failure import failure
from ddp_probe.traced.patching.frames import shed
from ddp_probe.traced.patching.guard import guard

_LAST_OF_ALL = -(1 << 20)  # multiprocessing runs what was registered with a higher number first.
_RUNNERS = ("__main__", "runpy")
_SPAWN = "multiprocessing.spawn"


class Leaving:
    """Notes the exit code of this process, and the exception that was being handled when it was chosen."""

    def __init__(
        self,
        last_word: Callable[[int], None],
        raised: Callable[[BaseException], None],
        exits: Callable[[], None],
    ) -> None:
        self.noted: Optional[int] = None  # What sys.exit was called with last; it may have been caught since.
        self.behind: Optional[Failure] = None  # The exception in whose handler that was.
        self.at: Optional[Site] = None  # The line of the job that called it, or os._exit, with a code other than 0.
        self._last_word = last_word
        self._raised = raised
        self._exits = exits
        self._called: Optional[ProcessExit] = None  # The last exit call; it may have been caught since.
        self._exit: Any = sys.exit
        self._leave: Any = os._exit
        self._quitter: Any = None  # The class of exit and quit.
        self._quit: Any = None
        self._ours: Any = ()
        self._outermost: Optional[FrameType] = None
        self._finalizer: Any = None
        self._handled = 0
        self._watching = False

    def watch(self) -> None:
        """Keep the outermost frame, put ours before each way to exit, and ask multiprocessing to tell of its end."""
        self._outermost = _outermost()
        self._exit, self._leave = sys.exit, os._exit
        sys.exit, os._exit = self._before(sys.exit, self._note, ""), self._before(os._exit, self._say, "status")
        os._exit.__module__ = "os"  # pickle looks a function up where it says it lives
        self._quitter = getattr(sys.modules.get("_sitebuiltins"), "Quitter", None)  # Missing under python -S.
        if self._quitter is not None:
            self._quit = self._quitter.__call__
            self._quitter.__call__ = self._before(self._quit, self._note, "code", own=1)
        self._ours = (sys.exit, os._exit, self._quitter and self._quitter.__call__)
        self._watching, self._outermost = True, _outermost()
        util = sys.modules.get("multiprocessing.util")
        if util is not None and of_multiprocessing():
            self._handled = id(sys.exc_info()[1])
            self._finalizer = util.Finalize(None, self._finalized, exitpriority=_LAST_OF_ALL)

    def unwatch(self) -> None:
        """Take all of it back, unless somebody has put another function over ours."""
        if self._watching and sys.exit is self._ours[0]:
            sys.exit = self._exit
        if self._watching and os._exit is self._ours[1]:
            os._exit = self._leave
        if self._watching and self._quitter is not None and self._quitter.__call__ is self._ours[2]:
            self._quitter.__call__ = self._quit
        if self._finalizer is not None:
            self._finalizer.cancel()
        self._watching, self._finalizer, self._outermost = False, None, None

    def let_go(self) -> None:
        """Keep the outermost frame no longer: with it, what the program holds would outlive the functions that run at exit."""
        self._outermost = None

    def code(self) -> Optional[int]:
        """Return the exit code; None if it is unknown, as after `raise SystemExit(2)` in the program itself."""
        left = _how_left(self._outermost)
        if left == "returned":
            return 0
        return None if left == "raised" else self.noted

    def called(self) -> Optional[ProcessExit]:
        """Return the exit call by which the program was left; None if it was caught, or if that is not known."""
        if self._outermost is None or _how_left(self._outermost):
            return None
        return self._called

    def _before(self, original: Any, note: Callable[[Any, Optional[FrameType]], None], name: str, own: int = 0) -> Any:
        """Return what notes the status that a way to exit is given, and calls it. Its own arguments come before the status."""

        def look(given: Sequence[Any], named: Dict[str, Any], caller: Optional[FrameType]) -> None:
            status = [*given[own:], *named.values()]
            if len(status) < 2 and set(named) <= {name}:  # Anything else is a TypeError, and the program goes on.
                note(status[0] if status else None, caller)

        def leave(*given: Any, **named: Any) -> Any:
            try:
                try:
                    guard.run("process", look, given, named, sys._getframe().f_back)  # atexit calls it without a frame of its own.
                except RecursionError as exc:  # No room for us on this stack.
                    if is_a_handlers_overflow(exc) or (FRAGILE and not forgotten()):
                        raise
                return original(*given, **named)
            except BaseException as exc:
                try:
                    shed(exc, code)
                except RecursionError as other:
                    if is_a_handlers_overflow(other):
                        raise
                raise

        code = leave.__code__
        return functools.update_wrapper(leave, original)

    def _note(self, status: Any, caller: Optional[FrameType]) -> None:
        if threading.current_thread() is not threading.main_thread():  # It ends the thread alone.
            return
        if self.noted == code_of(status) and caller is not None and module_of(caller) == _SPAWN:
            return  # It passes on what the child's function was left with.
        self.noted = code_of(status)
        self.at = _line(caller) if self.noted else None
        handled: Any = sys.exc_info()[1]
        caught = failure(handled) if issubclass(type(handled), Exception) else None
        self.behind = caught if self.noted else None
        self._called = None
        if (self.noted or caught is not None) and caller is not None:
            line = _line(caller)
            if line is None and caught is not None:  # A library hides what failed; the job's line leads there.
                line = call_path(caller)[0]
            self._called = ProcessExit(exit_code=self.noted, site=line, caught=caught)
            self._exits()

    def _say(self, status: Any, caller: Optional[FrameType]) -> None:
        if issubclass(type(status), int) and int.bit_length(status) < 32:  # Anything else is an error, and the program goes on.
            self.at = _line(caller) or self.at  # multiprocessing calls it for the child that has called sys.exit
            self._last_word(int.__and__(status, 0xFF))

    def _finalized(self) -> None:
        guard.run("process", self._look)

    def _look(self) -> None:
        """Look at the exception that ended the child's function: multiprocessing runs its finalizers while it passes."""
        exc: Any = sys.exc_info()[1]
        if exc is None or id(exc) == self._handled:
            return
        if issubclass(type(exc), SystemExit):
            self.noted = code_of(exc.code)
            if self.noted and issubclass(type(exc.__context__), Exception):
                self.behind = failure(exc.__context__)
        else:
            self.noted = self.at = self.behind = None  # An exit that was caught.
            self._raised(exc)


def _line(caller: Optional[FrameType]) -> Optional[Site]:
    """Return the line of the job that made a call; None if it was a library, or nobody's frame. The job may be installed."""
    if caller is None or not foreign(caller.f_code.co_filename):
        return None if caller is None else site(caller.f_code, caller.f_lineno)
    own, line = call_path(caller)[0], site(caller.f_code, caller.f_lineno)
    return line if own == line else None


def code_of(status: Any) -> Optional[int]:
    """Return the exit code that the interpreter makes of what sys.exit was given."""
    if status is None:
        return 0
    if issubclass(type(status), int):
        return int.__and__(status, 0xFF)
    return None if issubclass(type(status), SystemExit) else 1


def of_multiprocessing() -> bool:
    """Return whether this is a child of multiprocessing, however it was started."""
    module = sys.modules.get("multiprocessing.process")
    return module is not None and module.parent_process() is not None


def _outermost() -> Optional[FrameType]:
    """Return the frame that the whole program runs in, if this thread is in it."""
    if threading.current_thread() is not threading.main_thread():
        return None
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
    return frame if frame.f_globals.get("__name__") in _RUNNERS else None


def _how_left(frame: Optional[FrameType]) -> str:
    """Return "returned" or "raised" by the last instruction of a frame that has ended, or an empty text if that is unknown.

    A frame that a SystemExit has left stands at a call, which sys.exit has told of, or at a raise of its own, which nobody has.
    """
    if frame is None:
        return ""
    import opcode

    step = opcode.opname[frame.f_code.co_code[frame.f_lasti]] if frame.f_lasti >= 0 else ""
    if step.startswith("RETURN_"):
        return "returned"
    return "raised" if step == "RAISE_VARARGS" else ""
