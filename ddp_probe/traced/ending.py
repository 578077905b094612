"""The end of a process: the uncaught exception, written before anything else can fail, what was watched, the last line.

A signal's default action leaves no time for a line, and a handler of ours would change the job; the launcher tells of those.
"""

import atexit
import itertools
import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Type

from ddp_probe.shared import schema
from ddp_probe.shared.ours import traceback_of
from ddp_probe.traced.facts.accelerator_state import accelerators
from ddp_probe.traced.facts.failure import failure
from ddp_probe.traced.facts.plain_values import values_of_traceback
from ddp_probe.traced.last_word import LastWord
from ddp_probe.traced.leaving import Leaving, of_multiprocessing
from ddp_probe.traced.patching import clean_exception, overwritten_by
from ddp_probe.traced.patching.guard import guard
from ddp_probe.traced.session import Session

if TYPE_CHECKING:
    from ddp_probe.activation.targets import TargetRow


def coverage(session: Session) -> schema.Coverage:
    """Return what became of each target; optional ones that never appeared are left out."""
    rows = [_watched(session, row) for row in session.rows]
    missing = "never imported"
    targets = [watched for watched, row in zip(rows, session.rows) if not (row.optional and watched.state == missing)]
    for target, why in session.collectives.unwatched.items():
        because = "Its calls are not recorded: %s." % why
        targets.append(schema.WatchedTarget(probe="ledger", target=str(target), state="skipped", because=because))
    return schema.Coverage(targets=targets)


def _watched(session: Session, row: "TargetRow") -> schema.WatchedTarget:
    watched = schema.WatchedTarget(probe=row.probe, target=str(row))
    patch = session.patches.get(str(row))
    if patch is None:
        watched.state = "never imported"
        return watched
    watched.calls = patch.calls
    watched.state, watched.because = patch.state, patch.why
    if patch.state != "patched":
        return watched
    over = overwritten_by(patch)
    if over and "ddp_probe." in over:
        watched.because = "It is the same function as another target, and is watched there."
    elif over:
        watched.state, watched.because = "overwritten", over
    elif session.was_late(row):
        watched.state = "patched late"
        watched.because = "The module had been imported before the probe; aliases replaced: %d." % len(patch.aliases)
        kept = session.missed.get(str(row))
        if kept:
            watched.because += " Not reached: %s." % "; ".join(kept[:5])
    return watched


_THREADS = 8  # That many threads that end with an exception are written, and then ever fewer.
_Hook = Callable[[Type[BaseException], BaseException, Optional[TracebackType]], Any]


class Ending:
    """Listens for the end of this process without standing in its way."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._uncaught: Optional[BaseException] = None
        self._previous: Optional[_Hook] = None
        self._previous_of_threads: Any = None
        self._leaving = Leaving(self._at_once, self._note, self._exits)
        self._closed = False
        self._last_word: Dict[str, Any] = {}
        self._word = LastWord(session)
        self._threads_failed = itertools.count(1)

    def watch(self) -> None:
        """Chain the exception hook, note the ways out, and ask to be called at exit; a second time is as good as once."""
        self.unwatch()
        self._previous = sys.excepthook
        sys.excepthook = self._excepthook
        self._previous_of_threads = threading.excepthook
        threading.excepthook = self._thread_excepthook
        atexit.register(self._exit)
        self._leaving.watch()

    def stop(self) -> None:
        """Undo all of it for good: what still calls us from where we cannot reach it writes no coverage."""
        self._closed = True
        self.unwatch()

    def unwatch(self) -> None:
        """Undo all of it, unless somebody has put another hook over ours."""
        self._leaving.unwatch()
        if sys.excepthook == self._excepthook and self._previous is not None:
            sys.excepthook = self._previous
        if threading.excepthook == self._thread_excepthook:
            threading.excepthook = self._previous_of_threads
        atexit.unregister(self._exit)
        atexit.unregister(self._tell_exit_call)

    def _excepthook(self, kind: Type[BaseException], exc: BaseException, trace: Optional[TracebackType], shown: "Optional[_Shown]" = None) -> None:
        """Write the end and call the job's hook: each is done once, whatever a signal handler of the job's raises meanwhile.

        Up to Python 3.10 no signal is handled before a `try` at the beginning. From 3.11 one may be, as at the beginning of any hook.
        """
        try:
            if not issubclass(type(exc), BaseException):  # Somebody calls the hook by hand, with nothing in flight.
                (self._previous or sys.__excepthook__)(kind, exc, trace)
                return
            shown = _Shown(self._previous or sys.__excepthook__, kind, exc, trace)
            self._tell(exc)
            shown.call()
        except BaseException as came:
            if not issubclass(type(exc), BaseException):
                raise
            shown = shown or _Shown(self._previous or sys.__excepthook__, kind, exc, trace)
            self._tell(exc)
            shown.call()
            if not shown.returned:  # The job's hook was interrupted, or failed, as it would have without us.
                raise
            clean_exception(came)
            _Ignored(came)

    def _tell(self, exc: BaseException) -> None:
        guard.run("process", self._note, exc)
        guard.run("process", clean_exception, exc)

    def _thread_excepthook(self, args: Any) -> None:
        """Write that a thread ended. Its traceback is printed without our frames, as the main thread's is."""
        if type(args) is not threading.ExceptHookArgs:
            self._previous_of_threads(args)
            return
        guard.run("process", self._note_thread, args)
        guard.run("process", clean_exception, args.exc_value)  # A signal handler never runs in a thread.
        trace = None if args.exc_value is None else traceback_of(args.exc_value)
        self._previous_of_threads(threading.ExceptHookArgs((args.exc_type, args.exc_value, trace or args.exc_traceback, args.thread)))

    def _note_thread(self, args: Any) -> None:
        if self._closed or self._session.recorder.path is None or args.exc_value is None or issubclass(args.exc_type, SystemExit):
            return
        count = next(self._threads_failed)
        if count <= _THREADS or not count & (count - 1):
            after_main = not threading.main_thread().is_alive()
            self._session.recorder.point(schema.ThreadFailed(failure=failure(args.exc_value), after_main=after_main, count=count))

    def _note(self, exc: BaseException) -> None:
        self._uncaught = exc
        self._session.speak_for_ranks()
        described = failure(exc)
        described.values = values_of_traceback(traceback_of(exc))
        self.close(failure=described, uncaught=True, exit_code=130 if issubclass(type(exc), KeyboardInterrupt) else 1)
        self._word.enter_in_table(exc)

    def _at_once(self, code: int) -> None:
        """Write the last line now: os._exit leaves no time for one, and overrules what was known of the exit code."""
        self._close(code)
        self._session.collectives.watcher.stop()
        self._session.recorder.close()

    def _exits(self) -> None:
        """Ask to be called before the functions that the job has registered: one of them may hang."""
        atexit.unregister(self._tell_exit_call)
        atexit.register(self._tell_exit_call)

    def _tell_exit_call(self) -> None:
        try:
            guard.run("process", self._write_exit_call)
        except BaseException:  # raised by a signal handler of the job's
            guard.run("process", self._write_exit_call)
            raise

    def _write_exit_call(self) -> None:
        called = self._leaving.called()
        if called is not None and not self._closed and self._session.recorder.path is not None:
            self._session.recorder.point(called)

    def _exit(self) -> None:
        try:
            guard.run("process", self._last)
        except BaseException:  # raised by a signal handler of the job's
            guard.run("process", self._last)
            raise

    def _last(self) -> None:
        # The hook may have been replaced by a hook that does not chain; the interpreter keeps the exception anyway.
        left: Any = self._uncaught if self._uncaught is not None else getattr(sys, "last_value", None)
        if issubclass(type(left), BaseException):  # Again, if a signal handler of the job's cut it short.
            self._note(left)
        code = self._leaving.code()
        if self._uncaught is None and code is None and of_multiprocessing():
            return  # A child that was forked ends by os._exit, newer Pythons after this; the code is told there.
        if self._uncaught is None:
            self._close(code)
        self._session.collectives.watcher.stop()
        self._session.recorder.close()
        self._leaving.let_go()
        self._word.say()

    def close(self, **known: Any) -> None:
        """Write what is known at the end: once, and once more if the exit code turns out to be another one."""
        if self._session.recorder.path is None:
            return
        again = self._closed
        if again and known.get("exit_code") in (None, self._last_word.get("exit_code")):
            return
        try:
            self._closed = True
            self._session.collectives.watcher.tell_over()
            self._session.launch.stop()
            if not again:
                self._session.recorder.point(coverage(self._session))
            self._last_word.update(known)
            if not again:
                self._session.states.note("failure" if self._last_word.get("uncaught") else "end", always=True)
            last = last_event(self._session, **self._last_word)
            self._session.recorder.point(last)
        except BaseException:  # Raised by a signal handler of the job's: there is no last line yet.
            self._closed = again
            raise
        self._word.ask(last)

    def _close(self, code: Optional[int]) -> None:
        fields = {"failure": self._leaving.behind, "site": self._leaving.at} if code else {}
        self.close(exit_code=code, **{name: value for name, value in fields.items() if value is not None})


class _Shown:
    """The call of the job's exception hook. It is made by C code, so that no signal handler can come between making it and noting that."""

    def __init__(self, hook: _Hook, kind: Type[BaseException], exc: BaseException, trace: Optional[TracebackType]) -> None:
        # The traceback is read when the call is made: our frames are gone from it by then.
        read: Iterator[Any] = iter((trace,)) if traceback_of(exc) is None else map(traceback_of, (exc,))
        self._calls = map(hook, (kind,), (exc,), read)
        self.returned: List[Any] = []

    def call(self) -> None:
        """Call the hook, unless that has been done."""
        self.returned.extend(self._calls)


class _Ignored:
    """Reports an exception as Python reports one that a signal handler raises during exit: as ignored. Only a finalizer can."""

    def __init__(self, exc: BaseException) -> None:
        self._exc = exc

    def __del__(self) -> None:
        raise self._exc


def last_event(session: Session, **known: Any) -> schema.Event:
    """Return process.end, or launcher.end."""
    recorder = session.recorder
    if session.process.role.name == "launcher":
        launcher = session.loaded("launcher")
        return schema.LauncherEnd(silent_ranks=launcher.silent_ranks() if launcher is not None else [], **known)
    return schema.ProcessEnd(
        lines=recorder.lines,
        lost=recorder.lost,
        faults=dict(guard.counts),
        process_group=_group_open(),
        accelerators=accelerators(),
        **known,
    )


def _group_open() -> Optional[bool]:
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    is_initialized = getattr(c10d, "is_initialized", None)
    return None if is_initialized is None else bool(is_initialized())
